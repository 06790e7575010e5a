import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parsePath, single } from '../cli/option-values.ts';
import { printJson, printLine } from '../cli/output.ts';
import { tellSentence } from '../cli/print-sentence.ts';
import { EXIT } from '../errors.ts';

const bytesPerMegabyte = 1e6;

export const tokenizeCommand = defineCommand({
  flags: {
    out: {
      type: 'string',
      demandOption: true,
      describe: 'File of tokens to write; one that is there is replaced once the new one is whole',
      coerce: parsePath('out'),
    },
    tokenizer: {
      type: 'string',
      default: 'bytes',
      describe: "'bytes', a model's folder, a tokenizer.json, or tiktoken's ranks (cl100k_base.tiktoken)",
      coerce: parsePath('tokenizer'),
    },
    'end-of-text': {
      type: 'string',
      describe: "Token to put after each text: 'eos' for the tokenizer's own, or its text",
      coerce: (given: string | readonly string[]) => single('end-of-text', given),
    },
    ...jsonFlag,
  },
  examples: [
    ['roofline tokenize text.txt --out data.bin', 'a token is a byte: a vocabulary of 256'],
    ['roofline tokenize a.txt b.txt --out data.bin', 'one file of two texts, in this order'],
    [
      'roofline tokenize a.txt b.txt --tokenizer models/qwen --end-of-text eos --out data.bin',
      "a model's tokens",
    ],
  ],
  async run({ texts, out, tokenizer: named, json, ...args }) {
    const { tokenizeFiles } = await import('../tokenize/tokenize-files.ts');
    const { openTokenizer } = await import('../tokenize/open-tokenizer.ts');
    const { endOfTextToken } = await import('../tokenize/kept-tokenizer.ts');
    const { ProgressDisplay } = await import('../cli/progress.ts');
    const files = (texts as string[]).map(parsePath('texts'));
    const megabytes = (bytes: number) => Math.round(bytes / bytesPerMegabyte);
    const tokenizer = openTokenizer(named);
    const endOfText = endOfTextToken(tokenizer, args['end-of-text']);
    using progress = new ProgressDisplay();
    const written = await tokenizeFiles(
      files,
      out,
      { tokenizer, endOfText },
      {
        restarted: (done) => tellSentence(interruption(out, done)),
        progressed: (file, done, total) =>
          progress.status(`Tokenizing ${file}, MB`, megabytes(done), megabytes(total)),
      },
    );
    progress.clear();
    const { length, vocabularySize, dtype } = written;
    if (json) printJson({ path: out, texts: files, tokenizer: named, tokens: length, vocabularySize, dtype });
    else
      printLine(
        `${out}: ${length.toLocaleString('en')} tokens of a vocabulary of ${vocabularySize}, as ${dtype}`,
      );
    return EXIT.ok;
  },
});

function interruption(out: string, doneBytes: number | null): string {
  if (doneBytes === null)
    return `A run before was interrupted, too early to go on with it or with other texts or settings: ${out} is begun anew.`;
  return `A run before was interrupted: ${out} is gone on with after ${doneBytes.toLocaleString('en')} bytes.`;
}
