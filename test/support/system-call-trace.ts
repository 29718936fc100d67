import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';

/** A call that a program made to the kernel, as strace saw it. */
export interface SystemCall {
  readonly name: string;
  /** The path, pipe or connection of the file descriptor that comes first, or of what an `openat` or `mkdir` was asked for. */
  readonly target: string;
  /** All strings among the arguments, joined: the bytes of a write. One character for each byte. */
  readonly data: string;
  /** The arguments as strace prints them. */
  readonly text: string;
  readonly result: number;
  /** Where in the trace the call began and where it had returned. One call came before another only if it had returned when that one began. */
  readonly begin: number;
  readonly end: number;
}

const TRACED_CALLS = [
  'open,openat,mkdir,mkdirat,ftruncate,fsync,fdatasync,sync_file_range',
  'write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,sendmmsg,io_uring_enter',
].join(',');

/** The command under which a program is traced into a file. The program keeps its process id, so that signals reach it and not strace. */
export function straceCommand(traceFile: string): string[] {
  // -D: the tracer is a grandchild; -yy: descriptors with paths and connections; -s: no data is cut off; -q: nothing about attaching.
  return ['strace', '-D', '-f', '-qq', '-yy', '-s', '65536', '-e', `trace=${TRACED_CALLS}`, '-e', 'signal=none', '-o', traceFile];
}

/** Why no program can be traced here, or undefined when one can. */
export function straceProblem(): string | undefined {
  const { error, status, stderr } = spawnSync('strace', ['-f', '-yy', '-o', '/dev/null', 'true'], { encoding: 'utf8', timeout: 10_000 });
  if (error !== undefined) return 'code' in error && error.code === 'ENOENT' ? 'strace is not installed' : error.message;
  return status === 0 ? undefined : `strace cannot trace: ${stderr.trim().split('\n')[0] ?? `exit code ${status}`}`;
}

/** Reads what strace wrote. @throws {Error} when a line is none that it knows, so that nothing is passed over in silence */
export async function readTrace(traceFile: string): Promise<SystemCall[]> {
  return parseTrace(await readFile(traceFile, 'latin1'));
}

/*
 * A line is one of
 *
 *   4711  fdatasync(21</data/a.mmm>) = 0
 *   4711  fdatasync(21</data/a.mmm> <unfinished ...>      and, when other threads called in between,
 *   4711  <... fdatasync resumed>) = 0
 *   4711  --- SIGCHLD … ---   or   +++ exited with 0 +++
 */
export function parseTrace(text: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const unfinished = new Map<string, { begin: number; text: string }>();
  for (const [line, content] of text.split('\n').entries()) {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/s.exec(content) ?? [];
    if (rest === '') {
      if (content !== '') throw new Error(`line ${line + 1} of the trace has no process id: ${content.slice(0, 200)}`);
      continue;
    }
    if (/^(---|\+\+\+) /.test(rest)) continue;
    const begun = /^(.*?) ?<unfinished \.\.\.>$/s.exec(rest);
    if (begun !== null) {
      unfinished.set(thread, { begin: line, text: begun[1] ?? '' });
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/s.exec(rest);
    const start = unfinished.get(thread);
    if (resumed !== null && start === undefined)
      throw new Error(`line ${line + 1} of the trace ends what never began: ${rest.slice(0, 200)}`);
    unfinished.delete(thread);
    const whole = resumed === null ? rest : `${start?.text ?? ''}${resumed[1] ?? ''}`;
    calls.push(parseCall(whole, resumed === null ? line : (start?.begin ?? line), line));
  }
  // What a kill cut off has begun and never returned.
  for (const { begin, text: cut } of unfinished.values()) calls.push(parseCall(`${cut}) = ?`, begin, Number.POSITIVE_INFINITY));
  return calls.sort((a, b) => a.begin - b.begin);
}

function parseCall(text: string, begin: number, end: number): SystemCall {
  const match = /^(\w+)\((.*)\)\s+= (-?\d+|\?)/s.exec(text);
  if (match === null) throw new Error(`line ${end + 1} of the trace is no system call: ${text.slice(0, 200)}`);
  const [, name = '', argumentText = '', result = ''] = match;
  const strings = [...argumentText.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map(([, quoted = '']) => unescape(quoted));
  const data = strings.join('');
  // The name of a descriptor ends before a comma or at the end of the arguments; the one of a connection has a `>` of its own.
  const descriptor = /^\d+<(.*?)>(?=,|$)/s.exec(argumentText)?.[1];
  return {
    name,
    target: /^(open|mkdir)(at)?$/.test(name) ? (strings[0] ?? '') : (descriptor ?? ''),
    data,
    text: argumentText,
    result: result === '?' ? Number.NaN : Number(result),
    begin,
    end,
  };
}

const NAMED_ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', v: '\v', f: '\f' };

function unescape(quoted: string): string {
  return quoted.replace(/\\(x[0-9a-f]{2}|[0-7]{1,3}|.)/gs, (_, code: string) => {
    if (/^[0-7]/.test(code)) return String.fromCharCode(Number.parseInt(code, 8));
    if (/^x./.test(code)) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return NAMED_ESCAPES[code] ?? code;
  });
}
