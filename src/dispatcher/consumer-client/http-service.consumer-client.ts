import type { ClientRequest } from 'node:http';
import { Readable } from 'node:stream';
import { HttpService } from '@nestjs/axios';
import { Inject, Injectable } from '@nestjs/common';
import type { AxiosInstance, AxiosRequestConfig } from 'axios';
import { Attempt, type AnswerHeaders } from './attempt.js';
import type { ConsumerClient, ConsumerReply, ConsumerRequest } from './consumer-client.port.js';
import { failureReason, FailureReason } from './failure-reason.js';

/**
 * A consumer client over the application's own `HttpService`: with its interceptors, its agents, its default headers. It takes more CPU
 * than the default client.
 *
 * What the port promises is set for every request and goes before the application's own configuration: the deadline of the dispatcher
 * instead of axios's `timeout`, no redirects, no decompression, every status an answer. An interceptor sees the answer's body as a stream
 * and must hand it on unread.
 */
@Injectable()
export class HttpServiceConsumerClient implements ConsumerClient {
  private closed = false;

  constructor(@Inject(HttpService) private readonly http: HttpService) {}

  post(request: ConsumerRequest): Promise<ConsumerReply> {
    if (this.closed || request.signal.aborted) return Promise.resolve({ kind: 'failure', reason: FailureReason.stopping });
    const ending = new AbortController();
    const attempt = new Attempt(request, (readToItsEnd) => {
      if (!readToItsEnd) ending.abort();
    });
    exchange(this.http.axiosRef, request, attempt, ending.signal).catch((error: unknown) => attempt.fail(failureReason(error)));
    return attempt.reply;
  }

  /** The agents, and with them the idle connections, are the application's; Node.js lets no idle connection keep a process alive. */
  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}

async function exchange(axios: AxiosInstance, request: ConsumerRequest, attempt: Attempt, signal: AbortSignal): Promise<void> {
  const answer = await axios.request<unknown>(configOf(axios, request, signal));
  const body: unknown = answer?.data;
  if (!(body instanceof Readable && body.readable)) {
    attempt.fail('the HttpService hands on no answer stream that can be read');
    return;
  }
  // After the outcome the body is destroyed and may still report it; unheard, that would end the process.
  body.on('error', (error) => attempt.fail(failureReason(error)));
  body.on('close', () => attempt.fail(FailureReason.cutShort));
  attempt.begin(answer.status, answer.headers as AnswerHeaders);
  if (attempt.isSettled) {
    // Too large, or too late: an interceptor may have sent a request of its own, which the attempt's signal does not reach.
    body.destroy();
    return;
  }
  body.on('data', (chunk: Buffer) => attempt.receive(chunk));
  body.on('end', () => {
    const sent = answer.request as ClientRequest | undefined;
    // The consumer answered early and may never read the rest: node:http would wait for it with the socket in hand.
    if (sent?.writableFinished === false) sent.destroy();
    attempt.end();
  });
}

function configOf(axios: AxiosInstance, { host, path, headers, body }: ConsumerRequest, signal: AbortSignal): AxiosRequestConfig {
  return {
    method: 'post',
    url: host.url(path),
    // A base URL of the application is not for the consumer, whose host is a setting of the dispatcher.
    allowAbsoluteUrls: true,
    // No accept-encoding: an encoded answer would not be decoded.
    headers: { ...headers, 'Accept-Encoding': false },
    data: body,
    signal,
    // The bounds hold for the http adapter alone.
    adapter: 'http',
    // A stream, so that the size is seen before and while the body is read.
    responseType: 'stream',
    maxContentLength: -1,
    maxBodyLength: -1,
    timeout: 0,
    maxRedirects: 0,
    decompress: false,
    validateStatus: null,
    // Left alone, axios takes a proxy from HTTP_PROXY and its kind, and a message would leave for a machine that nobody named in the
    // settings. A proxy is used where the application's axios configuration names one.
    proxy: axios.defaults.proxy ?? false,
  };
}
