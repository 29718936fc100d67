const { env } = process;

/** Where the broker listens, where it keeps its messages, and where the mailer is. */
export const brokerSettings = {
  host: env['BROKER_HOST'] ?? '127.0.0.1',
  port: Number(env['BROKER_PORT'] ?? 8080),
  dataDir: env['BROKER_DATA_DIR'] ?? 'examples/orders/data/broker',
  mailerUrl: env['MAILER_URL'] ?? 'http://127.0.0.1:8081',
};
