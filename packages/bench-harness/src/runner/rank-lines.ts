// What ranks report to the process that started them, on lines of their own among all else that they may print.

const mark = '@roofline-rank ';

/** Sends what JSON holds. */
export function sendRankEvent<Event>(event: Event): void {
  process.stdout.write(`${mark}${JSON.stringify(event)}\n`);
}

/** The event of a line as a launcher passes it on; null for other output. */
export function readRankEvent<Event>(line: string): Event | null {
  const start = line.indexOf(mark);
  return start < 0 ? null : (JSON.parse(line.slice(start + mark.length)) as Event);
}
