/** Of a pool to PostgreSQL. More only wait for each other. */
export const MAX_CONNECTIONS = 32;
