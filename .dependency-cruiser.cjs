const { readdirSync } = require('node:fs');
const { join } = require('node:path');

/*
 * The house has floors, and imports go down only: core <- express, http-route, message <- consumer, settings, storage <- disk-queue <- producer,
 * topic-queue <- dispatcher <- broker <- operations <- the testing kit, the offline tools, the application. A part that knows only what stands
 * below it can be understood, tested and replaced alone: the
 * engine port in core is what lets another log take the place of the files, and that holds only as long as nothing above storage knows
 * files. A folder is entered through its index.ts, so that what is behind it can change.
 */
const FLOORS = [
  'core',
  'express',
  'http-route',
  'message',
  'consumer',
  'settings',
  'storage',
  'disk-queue',
  'producer',
  'topic-queue',
  'dispatcher',
  'broker',
  'operations',
  'testing',
  'cli',
];

/** Two parts of one floor that know nothing of each other. */
const STRANGERS = [
  ['message', 'storage'],
  ['http-route', 'message'],
];

/**
 * It keeps files of its own, by way of the port that storage has to the disk; nothing else of storage, and nothing of the broker, is known
 * to it: it is of use alone.
 */
const DISK_QUEUE = '^src/disk-queue/';

/** A client: it knows the broker's HTTP and nothing of the broker. The dead file of its spool stands on the port to the disk. */
const PRODUCER = '^src/producer/';
const PRODUCER_SPOOL = '^src/producer/spool/';

/**
 * Where the parts are put together: the one place above storage that says which engine it is. And the offline tools, which look at the files
 * themselves.
 */
const ASSEMBLY = ['^src/broker/broker\\.module\\.ts$', '^src/[^/]+\\.ts$', '^src/cli/'];

const upwards = FLOORS.flatMap((floor, index) => {
  const above = FLOORS.slice(index + 1);
  return above.length === 0
    ? []
    : [
        {
          name: `${floor}-knows-only-what-is-below`,
          severity: 'error',
          from: { path: `^src/${floor}/` },
          to: { path: `^src/((${above.join('|')})/|[^/]+\\.ts$)` },
        },
      ];
});

/** Every folder below src that has an entrance, however deep it stands. */
const entered = readdirSync(join(__dirname, 'src'), { recursive: true })
  .map((path) => `src/${path.replaceAll('\\', '/')}`)
  .filter((path) => path.endsWith('/index.ts') && path !== 'src/index.ts')
  .map((path) => path.slice(0, -'/index.ts'.length));

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    ...upwards,
    ...STRANGERS.flatMap(([one, other]) => [
      { name: `${one}-and-${other}-are-strangers`, severity: 'error', from: { path: `^src/${one}/` }, to: { path: `^src/${other}/` } },
      { name: `${other}-and-${one}-are-strangers`, severity: 'error', from: { path: `^src/${other}/` }, to: { path: `^src/${one}/` } },
    ]),
    {
      name: 'nothing-above-storage-knows-files',
      comment: 'the engine port in core is what there is to know; a spec may run on the real engine',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/storage/', DISK_QUEUE, PRODUCER_SPOOL, ...ASSEMBLY, '\\.spec\\.ts$'] },
      to: { path: '^src/storage/' },
    },
    ...entered.map((folder) => ({
      name: `${folder.slice('src/'.length).replaceAll('/', '-')}-is-entered-through-its-index`,
      severity: 'error',
      from: { path: '^src/', pathNot: [`^${folder}/`, ...(folder === 'src/storage' ? [DISK_QUEUE, PRODUCER_SPOOL] : [])] },
      to: { path: `^${folder}/`, pathNot: [`^${folder}/index\\.ts$`] },
    })),
    {
      name: 'the-disk-queue-knows-only-core-and-the-port-to-the-disk',
      severity: 'error',
      from: { path: DISK_QUEUE },
      to: { path: '^src/', pathNot: [DISK_QUEUE, '^src/core/', '^src/storage/file-system/'] },
    },
    {
      name: 'the-broker-knows-no-consumer',
      comment: 'they meet on the wire alone, and are of use without each other',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/(consumer|testing)/'] },
      to: { path: '^src/consumer/' },
    },
    {
      name: 'the-producer-knows-no-broker',
      severity: 'error',
      from: { path: PRODUCER },
      to: { path: '^src/', pathNot: [PRODUCER, '^src/(core|message|disk-queue)/', '^src/storage/file-system/'] },
    },
    {
      name: 'no-part-of-the-broker-knows-the-producer',
      severity: 'error',
      from: { path: '^src/', pathNot: [PRODUCER, '^src/testing/'] },
      to: { path: PRODUCER },
    },
    {
      name: 'the-offline-tools-know-only-the-files',
      comment: 'they work where no broker runs',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: { path: '^src/', pathNot: ['^src/(cli|core|message|storage)/'] },
    },
    {
      name: 'core-is-plain-typescript',
      comment: 'it needs Node and nothing else, least of all a framework',
      severity: 'error',
      from: { path: '^src/core/', pathNot: '\\.spec\\.ts$' },
      to: { path: '(^|/)node_modules/' },
    },
    {
      name: 'only-the-file-system-touches-the-disk',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/storage/file-system/', '^src/settings/', '\\.spec\\.ts$'] },
      to: { path: '^(node:)?fs(/promises)?$' },
    },
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true, dependencyTypesNot: ['type-only'] } },
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)test/' },
  },
};
