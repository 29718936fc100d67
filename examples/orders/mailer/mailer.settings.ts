/** Where the mailer listens, and the file that stands for the mails it sent. */
export const mailerSettings = {
  port: Number(process.env['MAILER_PORT'] ?? 8081),
  file: process.env['MAILER_FILE'] ?? 'examples/orders/data/mails.json',
};
