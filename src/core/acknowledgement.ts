/** What a broker answers to a publish and a consumer to a delivery: `{"acknowledgement":"ACK"}` or `{"acknowledgement":"NACK"}`. */
export const Acknowledgement = { ACK: 'ACK', NACK: 'NACK' } as const;
export type Acknowledgement = (typeof Acknowledgement)[keyof typeof Acknowledgement];
