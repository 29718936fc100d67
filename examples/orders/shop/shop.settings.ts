const { env } = process;

/** Where the shop listens, where the broker is, and where messages go while the broker is away. */
export const shopSettings = {
  host: env['SHOP_HOST'] ?? '127.0.0.1',
  port: Number(env['SHOP_PORT'] ?? 3000),
  brokerUrl: env['BROKER_URL'] ?? 'http://127.0.0.1:8080',
  spoolDir: env['SHOP_SPOOL_DIR'] ?? 'examples/orders/data/shop',
};
