import type { IncomingMessage, ServerResponse } from 'node:http';

/** Ends when the client of a request is gone before it has its answer. */
export class ClientSignal {
  private readonly gone = new AbortController();

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {
    // A response that waits for its turn on the connection is not told, so the connection is asked too.
    response.once('close', this.onClose);
    request.socket.once('close', this.onClose);
    if (request.socket.destroyed) this.onClose();
  }

  get signal(): AbortSignal {
    return this.gone.signal;
  }

  /** The answer is given. Connections live longer than requests. */
  end(): void {
    this.response.off('close', this.onClose);
    this.request.socket.off('close', this.onClose);
  }

  private readonly onClose = (): void => {
    if (!this.response.writableFinished) this.gone.abort(new Error('the dispatcher has closed the connection'));
  };
}
