import { Inject, Injectable } from '@nestjs/common';
import { BodyReader, JSON_TYPE } from '../http-route/index.js';
import { CONSUMER_SETTINGS, type ConsumerSettings } from './consumer.options.js';

/** As much as a broker has of publishes, by default. */
const PENDING_BYTES = 64 * 1024 * 1024;
/** So many of the largest bodies find room in any case. */
const LARGEST_BODIES = 4;

/** Reads the bodies of deliveries. Those that wait for their turn are bounded by their bytes and number, whatever `concurrency` is. */
@Injectable()
export class DeliveryBodyReader extends BodyReader {
  constructor(@Inject(CONSUMER_SETTINGS) { maxBodyBytes }: ConsumerSettings) {
    const rule = { mediaTypes: [JSON_TYPE], maxBytes: maxBodyBytes, setting: 'the option maxBodyBytes of ConsumerModule' };
    super({
      single: rule,
      batch: rule,
      pendingMaxBytes: Math.max(PENDING_BYTES, LARGEST_BODIES * maxBodyBytes),
      words: { one: 'delivery', many: 'deliveries', place: 'the consumer', module: 'ConsumerModule' },
    });
  }
}
