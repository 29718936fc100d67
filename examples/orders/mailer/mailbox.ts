import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { mailerSettings } from './mailer.settings.js';

export interface Mail {
  /** The message that it was sent for. No two mails have the same. */
  readonly message: string;
  readonly to: string;
  readonly text: string;
}

/**
 * The mails that were sent, in the order of sending. They go to a file here, where a real mailer would have a database: a mail, and that its
 * message is done, are written in one step, so that there is never one without the other.
 */
@Injectable()
export class Mailbox implements OnModuleInit {
  private sent: readonly Mail[] = [];
  private last: Promise<void> = Promise.resolve();

  get mails(): readonly Mail[] {
    return this.sent;
  }

  async onModuleInit(): Promise<void> {
    await mkdir(dirname(mailerSettings.file), { recursive: true });
    this.sent = await readMails();
  }

  /**
   * Sends a mail, unless one was sent for its message before: a message is delivered at least once, which now and then is twice. One mail
   * after the other, as the second delivery of a message can come while the first is still being dealt with.
   */
  sendOnce(mail: Mail): Promise<void> {
    const sending = this.last.then(() => this.send(mail));
    this.last = sending.catch(() => undefined);
    return sending;
  }

  private async send(mail: Mail): Promise<void> {
    if (this.sent.some(({ message }) => message === mail.message)) return;
    const mails = [...this.sent, mail];
    // Whole and on disk, or not there at all: a file that was only half written never gets the name.
    await writeFile(`${mailerSettings.file}.new`, `${JSON.stringify(mails, null, 2)}\n`, { flush: true });
    await rename(`${mailerSettings.file}.new`, mailerSettings.file);
    this.sent = mails;
    console.log(`mailed ${mail.to}: ${mail.text}`);
  }
}

async function readMails(): Promise<readonly Mail[]> {
  try {
    return JSON.parse(await readFile(mailerSettings.file, 'utf8')) as Mail[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
