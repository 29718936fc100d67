import type { Bar, Cell, Claim, Findings, Table } from './claim.js';
import type { Machine } from './machine.js';
import type { Scale } from './scale.js';
import { median } from './statistics.js';

const number = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

/** How a bar came out. Where nothing could be measured nothing is met. */
export function verdictOf({ measured, rule }: Bar): 'met' | 'NOT MET' | 'not measured' {
  if (measured === undefined) return 'not measured';
  const value = median(measured);
  return ('atMost' in rule ? value <= rule.atMost : value >= rule.atLeast) ? 'met' : 'NOT MET';
}

export function printHead(machine: Machine, scale: Scale, doubts: readonly string[]): void {
  const { cpu, cores, memoryGb, system, node, fileSystem, load } = machine;
  const { rounds, warmUpMs, measureMs } = scale;
  console.log(`machine   ${cpu}, ${cores} cores, ${memoryGb} GB, ${system}, load ${load}`);
  console.log(`node      ${node}`);
  console.log(`data on   ${fileSystem}`);
  console.log(
    `settings  ${scale.name}: ${rounds} interleaved round${rounds === 1 ? '' : 's'}, each ${warmUpMs} ms to warm up and ${measureMs} ms measured; broker defaults`,
  );
  console.log('figures   median (lowest–highest) of the rounds; ratios are made round by round');
  for (const doubt of doubts) console.log(`DOUBT     ${doubt}`);
}

export function printFindings({ name, about }: Claim, { tables, bars }: Findings): void {
  console.log(`\n${name}: ${about}`);
  for (const table of tables) console.log(`\n${tableText(table)}`);
  console.log(`\n${tableText(barTable(bars))}`);
}

function barTable(bars: readonly Bar[]): Table {
  const rows = bars.map((bar) => {
    const demanded = 'atMost' in bar.rule ? `≤ ${number.format(bar.rule.atMost)}` : `≥ ${number.format(bar.rule.atLeast)}`;
    return [bar.what, bar.measured, demanded, verdictOf(bar)];
  });
  return { columns: ['bar', 'measured', 'demanded', ''], rows };
}

/** A table in columns that stand below each other. */
export function tableText({ columns, rows }: Table): string {
  const lines = [columns, ...rows.map((row) => row.map(cellText))];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) => `  ${line.map((text, column) => text.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd()).join('\n');
}

function cellText(cell: Cell): string {
  if (cell === undefined) return '–';
  if (typeof cell === 'string') return cell;
  const lowest = number.format(Math.min(...cell));
  const highest = number.format(Math.max(...cell));
  return lowest === highest ? lowest : `${number.format(median(cell))} (${lowest}–${highest})`;
}
