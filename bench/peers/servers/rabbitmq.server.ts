import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Workbench } from '../../harness/workbench.js';
import { freePort } from './free-port.js';
import { installed } from './installed.js';
import { PeerProcess } from './peer-process.js';
import type { Started } from './subject.js';

const NEEDS = 'rabbitmq-server 3.8 or newer with its Erlang (Debian: rabbitmq-server)';
const ON_LOOPBACK = '-kernel inet_dist_use_interface {127,0,0,1}';
/** Ctrl-C reaches it too, and would open a menu. */
const IGNORE_SIGINT = '+B i';

/** One server with a name register (epmd) of its own, so that it knows nothing of others on this machine. */
export async function startRabbitMq(bench: Workbench): Promise<Started> {
  // Debian's rabbitmq-server in PATH would run as another user; the one that it calls does not.
  const command = await installed('rabbitmq-server', NEEDS, ['/usr/lib/rabbitmq/bin']);
  const epmd = await installed('epmd', NEEDS, ['/usr/lib/erlang/bin', '/usr/lib/erlang/erts-*/bin']);
  const cwd = await bench.directory();
  const [port, distributionPort, epmdPort] = [await freePort(), await freePort(), await freePort()];
  const config = join(cwd, 'rabbitmq.conf');
  const plugins = join(cwd, 'enabled_plugins');
  await writeFile(config, `listeners.tcp.1 = 127.0.0.1:${port}\nlog.console = true\nlog.console.level = info\nlog.file = false\n`);
  await writeFile(plugins, '[].\n');
  const epmdEnv = { ERL_EPMD_PORT: String(epmdPort), ERL_EPMD_ADDRESS: '127.0.0.1' };
  await PeerProcess.start(bench, { command: epmd, args: ['-port', String(epmdPort), '-address', '127.0.0.1'], cwd });
  const server = await PeerProcess.start(bench, {
    command,
    args: [],
    cwd,
    env: {
      ...epmdEnv,
      HOME: cwd,
      LANG: 'C.UTF-8',
      RABBITMQ_CONF_ENV_FILE: '/dev/null',
      RABBITMQ_CONFIG_FILE: config,
      RABBITMQ_ENABLED_PLUGINS_FILE: plugins,
      RABBITMQ_NODENAME: 'mmmq-bench-peers@localhost',
      RABBITMQ_MNESIA_BASE: join(cwd, 'mnesia'),
      RABBITMQ_LOG_BASE: join(cwd, 'log'),
      RABBITMQ_DIST_PORT: String(distributionPort),
      // With it the script becomes the server, and does not stand in front of it as a process of its own.
      RUNNING_UNDER_SYSTEMD: 'true',
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `${ON_LOOPBACK} ${IGNORE_SIGINT}`,
    },
    ready: /Server startup complete/,
  });
  const version = `RabbitMQ ${server.found(/Starting RabbitMQ (\S+)/)}`;
  const target = { client: 'rabbitmq', port, pid: server.pid } as const;
  return {
    subjects: [
      {
        peer: 'RabbitMQ',
        manner: 'synced',
        version,
        settings: 'quorum queue of one member: syncs before it confirms, as it comes',
        target: { ...target, isSynced: true },
      },
      {
        peer: 'RabbitMQ',
        manner: 'as it comes',
        version,
        settings: 'classic durable queue, persistent messages',
        target: { ...target, isSynced: false },
      },
    ],
    missing: [],
  };
}
