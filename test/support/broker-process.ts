import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { endedAfterEach, NodeProcess, type NodeProcessOptions } from './node-process.js';

const BROKER_MAIN = join(import.meta.dirname, '../../dist/main.js');

/** The working directory gets `data`, and `config/mmmq.yaml` where there is a configuration. */
export interface BrokerProcessOptions extends NodeProcessOptions {
  /** The text of config/mmmq.yaml. */
  readonly config?: string;
}

/** A broker as an operator runs it: the built program, on a free port unless its environment says otherwise. */
export class BrokerProcess extends NodeProcess {
  /** Where it listens, once it is {@link ready}. */
  url = '';

  constructor({ env, ...options }: NodeProcessOptions) {
    super(BROKER_MAIN, { ...options, env: { SERVER_PORT: '0', ...env } });
  }

  async ready(): Promise<void> {
    this.url = (await this.printed(/mmmq is ready on (http:\/\/\S+)/))[1] ?? '';
  }

  publish(message: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.url}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof message === 'string' ? message : JSON.stringify(message),
    });
  }
}

export interface BrokerProcesses {
  /** Starts a broker and does not wait for anything. */
  spawn(options: BrokerProcessOptions): Promise<BrokerProcess>;
  /** Starts a broker and waits until it says that it is ready. @throws {Error} when it does not come to that */
  start(options: BrokerProcessOptions): Promise<BrokerProcess>;
}

/** Starts brokers and leaves none running behind a test. To be called at the top of a spec. */
export function brokerProcesses(): BrokerProcesses {
  const keep = endedAfterEach();
  const spawn = async ({ config, ...options }: BrokerProcessOptions): Promise<BrokerProcess> => {
    if (config !== undefined) {
      await mkdir(join(options.cwd, 'config'), { recursive: true });
      await writeFile(join(options.cwd, 'config/mmmq.yaml'), config);
    }
    return keep(new BrokerProcess(options));
  };
  return {
    spawn,
    start: async (options) => {
      const broker = await spawn(options);
      await broker.ready();
      return broker;
    },
  };
}
