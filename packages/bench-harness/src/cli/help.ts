import { type CommandEntry, commandGroups } from './command.ts';
import { spokenCommand } from './invocation.ts';

/** The command that yargs has of itself, and the word by which a shell asks it what may follow. */
export const COMPLETION = [
  'completion',
  'Print the script for tab completion: roofline completion >> ~/.bashrc',
] as const;
export const COMPLETION_WORD = '--get-yargs-completions';

/** Longer lines are hard to read. */
export const WIDEST_HELP = 110;

/** `name` with what follows it, and what it does. */
type Line = readonly [word: string, meaning: string];

export const EXIT_CODES =
  'Exit codes: 0 all measured, 1 a failure, 2 wrong usage, 3 some cells ran out of memory, 130 interrupted.';

/** What `roofline --help` prints, in lines of at most `width` columns. */
export function commandList(entries: readonly CommandEntry[], width: number): string {
  const groups = Object.entries(commandGroups).map(([group, title]) => ({
    title,
    lines: [
      ...entries
        .filter((entry) => entry.group === group)
        .map(({ name, positionals, summary }): Line => [
          [name, positionals].filter(Boolean).join(' '),
          summary,
        ]),
      ...(group === 'set-up' ? [COMPLETION] : []),
    ],
  }));
  const options: Line[] = [
    ['-h, --help', 'Show this, or the flags and examples of a command'],
    ['-V, --version', 'Show the version'],
  ];
  const command = spokenCommand();
  return [
    `${command} <command>`,
    wrapped('Train-step benchmarks of Transformers, every time next to the hardware ceiling.', width),
    ...[...groups, { title: 'Options', lines: options }].map(({ title, lines }) =>
      listed(title, lines, width),
    ),
    wrapped(`\`${command} <command> --help\` shows the flags of a command, with examples.`, width),
    wrapped(EXIT_CODES, width),
  ].join('\n\n');
}

function listed(title: string, lines: readonly Line[], width: number): string {
  const room = Math.max(...lines.map(([word]) => word.length)) + 4;
  const texts = lines.map(([word, meaning]) => `  ${word.padEnd(room - 2)}${wrapped(meaning, width, room)}`);
  return [`${title}:`, ...texts].join('\n');
}

/** Broken at words, where the text begins in column `indent`. */
function wrapped(text: string, width: number, indent = 0): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && indent + line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}
