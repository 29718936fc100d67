import { appendFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { mailerSettings } from './mailer.settings.js';

export interface Mail {
  /** The same for each mail that is sent for the same message. */
  readonly messageId: string;
  readonly to: string;
  readonly text: string;
}

/** Stands for a mail server: each mail becomes a line of a file. While its directory is moved away, it is out of order. */
@Injectable()
export class MailServer implements OnModuleInit {
  async onModuleInit(): Promise<void> {
    await mkdir(mailerSettings.mailServerDir, { recursive: true });
  }

  async send(mail: Mail): Promise<void> {
    await appendFile(join(mailerSettings.mailServerDir, 'mails.ndjson'), `${JSON.stringify(mail)}\n`);
  }
}
