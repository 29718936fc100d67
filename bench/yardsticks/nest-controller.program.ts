import 'reflect-metadata';
import { Body, Controller, HttpCode, Inject, Module, Post, ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IsDefined, IsString, Matches } from 'class-validator';
import { BrokerModule, messageOf, TopicQueueService } from 'mmmq';
import { programInput } from '../harness/program.js';

/*
 * The yardstick "plain Nest": the broker's own storage behind a controller as one writes it first, on Express, with Nest's body parser, a DTO
 * and the ValidationPipe. Given the data directory.
 */
class PublishDto {
  @IsString()
  @Matches(/^[\w-]+(\.[\w-]+)*$/)
  readonly topic!: string;

  @IsDefined()
  readonly content!: unknown;
}

@Controller('plain-messages')
class PlainMessagesController {
  constructor(@Inject(TopicQueueService) private readonly topicQueues: TopicQueueService) {}

  @Post()
  @HttpCode(200)
  async publish(@Body() { topic, content }: PublishDto): Promise<{ acknowledgement: 'ACK'; topic: string; offset: number }> {
    return { acknowledgement: 'ACK', ...(await this.topicQueues.append(messageOf({ topic, content }))) };
  }
}

@Module({ imports: [BrokerModule.forRoot({ storage: { rootDir: programInput<string>() } })], controllers: [PlainMessagesController] })
class PlainModule {}

const app = await NestFactory.create(PlainModule, { logger: ['error', 'warn'], abortOnError: false });
app.useGlobalPipes(new ValidationPipe({ whitelist: true, transform: true }));
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
console.log(`ready on ${await app.getUrl()}`);
