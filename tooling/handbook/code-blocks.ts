/** Why a block is not run where the pages are tested. */
export const marks = {
  install: 'fetches what is here already',
  gpu: 'needs a GPU',
  gloo: 'needs the shim of @roofline/collectives',
  host: 'is for another machine',
  flags: 'takes long, and other pages run the like',
} as const;
export type Mark = keyof typeof marks;

/**
 * A block of code of a page. After the language come the file that it is, and why it is not run: ` ```ts train.ts gpu`.
 */
export interface CodeBlock {
  readonly language: string;
  readonly file: string | null;
  readonly mark: Mark | null;
  readonly code: string;
  /** Where it begins on the page. */
  readonly line: number;
}

/** The blocks of a Markdown page in their order. Throws for words after a language that mean nothing. */
export function codeBlocks(page: string): CodeBlock[] {
  return [...page.matchAll(/^```(\w+)([^\n]*)\n([\s\S]*?)^```$/gm)].map((match) => {
    const [, language = '', words = '', code = ''] = match;
    const line = page.slice(0, match.index).split('\n').length;
    const block = { language, file: null as string | null, mark: null as Mark | null, code, line };
    for (const word of words.split(' ').filter(Boolean)) {
      if (word in marks) block.mark = word as Mark;
      else if (word.includes('.')) block.file = word;
      else
        throw new Error(
          `line ${line}: "${word}" is neither a file nor one of ${Object.keys(marks).join(', ')}`,
        );
    }
    return block;
  });
}
