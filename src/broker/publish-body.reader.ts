import { Inject, Injectable } from '@nestjs/common';
import { BodyReader, JSON_TYPE, NDJSON_TYPE } from '../http-route/index.js';
import { BROKER_SETTINGS, type BrokerSettings } from '../settings/index.js';

/** Reads the bodies of publishes: those of `POST /messages`, and of `POST /messages/batch`. */
@Injectable()
export class PublishBodyReader extends BodyReader {
  constructor(@Inject(BROKER_SETTINGS) { message, batch, pending }: BrokerSettings) {
    super({
      single: { mediaTypes: [JSON_TYPE], maxBytes: message.maxBytes, setting: 'message.max-bytes' },
      batch: { mediaTypes: [NDJSON_TYPE, JSON_TYPE], maxBytes: batch.maxBytes, setting: 'batch.max-bytes' },
      pendingMaxBytes: pending.maxBytes,
      words: { one: 'publish', many: 'publishes', place: 'the broker', module: 'BrokerModule' },
    });
  }
}
