/** Where the shop listens, where its broker keeps the messages, and where the mailer is. */
export const shopSettings = {
  port: Number(process.env['SHOP_PORT'] ?? 8080),
  dataDir: process.env['SHOP_DATA_DIR'] ?? 'examples/orders/data/shop',
  mailerUrl: process.env['MAILER_URL'] ?? 'http://127.0.0.1:8081',
};
