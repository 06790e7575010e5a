import { renderTerminal, type Table } from '@roofline/reports';

export function printTable(table: Table): void {
  const { isTTY, columns } = process.stdout;
  process.stdout.write(renderTerminal(table, { width: isTTY ? columns : 160, color: Boolean(isTTY) }));
}
