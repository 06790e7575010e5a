import { renderTerminal, type Table } from '@roofline/reports';
import { hasColors, widthOf } from './terminal.ts';

export function printTable(table: Table): void {
  const { stdout } = process;
  stdout.write(renderTerminal(table, { width: widthOf(stdout), color: hasColors(stdout) }));
}
