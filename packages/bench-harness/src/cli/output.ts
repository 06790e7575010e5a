/** Machine output: the only thing on stdout under --json. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

export function printLine(text = ''): void {
  process.stdout.write(`${text}\n`);
}

/** What people want to know while they wait, or besides the result; never mixed into piped output. */
export function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** A reader that went away (`| head`) is no error. */
export function tolerateClosedPipes(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}
