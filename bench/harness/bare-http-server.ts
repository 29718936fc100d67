import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A node:http server with nothing around it, on a free port: reads each body to its end, and answers 200 with the JSON that is handed to
 * `answer`. Prints its address when it is ready.
 */
export function serveBare(handle: (body: Buffer, answer: (json: string) => void, request: IncomingMessage) => void): void {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    const answer = (json: string): void => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }).end(json);
    };
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => handle(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks), answer, request));
  });
  // The bench asks the consumer now and then, on a connection that must not be closed the moment it is used again.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1', () => console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`));
}
