import { defineCommand, jsonFlag } from '../cli/command.ts';
import { parseChoice, parsePath, single } from '../cli/option-values.ts';
import { printJson, printLine } from '../cli/output.ts';
import { tellSentence } from '../cli/print-sentence.ts';
import { EXIT } from '../errors.ts';
import { tokenizerNames, tokenizerOf } from '../tokenize/tokenizers.ts';

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
      values: tokenizerNames,
      describe: 'What makes tokens of a text',
      coerce: (given: string | readonly string[]) =>
        parseChoice('tokenizer', single('tokenizer', given), tokenizerNames),
    },
    ...jsonFlag,
  },
  examples: [
    ['roofline tokenize text.txt --out data.bin', 'a token is a byte: a vocabulary of 256'],
    ['roofline tokenize a.txt b.txt --out data.bin', 'one file of two texts, in this order'],
  ],
  async run({ texts, out, tokenizer, json }) {
    const { tokenizeFiles } = await import('../tokenize/tokenize-files.ts');
    const { ProgressDisplay } = await import('../cli/progress.ts');
    const files = (texts as string[]).map(parsePath('texts'));
    const megabytes = (bytes: number) => Math.round(bytes / bytesPerMegabyte);
    using progress = new ProgressDisplay();
    const written = tokenizeFiles(files, out, tokenizerOf(tokenizer), {
      restarted: () => tellSentence(`A run before was interrupted: ${out} is begun anew.`),
      progressed: (file, done, total) =>
        progress.status(`Tokenizing ${file}, MB`, megabytes(done), megabytes(total)),
    });
    progress.clear();
    const { length, vocabularySize, dtype } = written;
    if (json) printJson({ path: out, texts: files, tokenizer, tokens: length, vocabularySize, dtype });
    else
      printLine(
        `${out}: ${length.toLocaleString('en')} tokens of a vocabulary of ${vocabularySize}, as ${dtype}`,
      );
    return EXIT.ok;
  },
});
