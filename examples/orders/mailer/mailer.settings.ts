const { env } = process;

/** Where the mailer listens, and the directory that stands for its mail server. */
export const mailerSettings = {
  host: env['MAILER_HOST'] ?? '127.0.0.1',
  port: Number(env['MAILER_PORT'] ?? 8081),
  mailServerDir: env['MAIL_SERVER_DIR'] ?? 'examples/orders/data/mail-server',
};
