import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { otherMutators } from './condition-mutator.mjs';

const fromCore = createRequire(createRequire(import.meta.url).resolve('@stryker-mutator/core'));
const { Instrumenter } = await import(pathToFileURL(fromCore.resolve('@stryker-mutator/instrumenter')).href);

const silent = { isDebugEnabled: () => false, debug() {}, info() {}, warn() {} };

/**
 * Sources with all wrong conditions in them at once, each behind a switch, and what these are: `source` is the line that
 * holds one, `original` and `replacement` the text that is exchanged.
 */
export async function instrument(files) {
  const sources = files.map((name) => ({ name, mutate: true, content: readFileSync(name, 'utf8') }));
  const options = { ignorers: [], excludedMutations: otherMutators, plugins: null };
  const result = await new Instrumenter(silent).instrument(sources, options);
  const lines = new Map(sources.map(({ name, content }) => [name, content.split('\n')]));
  const mutants = result.mutants
    .filter(({ status }) => status !== 'Ignored')
    .map(({ id, fileName, location, replacement }) => ({
      id,
      file: fileName,
      line: location.start.line + 1,
      source: lines.get(fileName)[location.start.line].trim(),
      original: textAt(lines.get(fileName), location),
      replacement: onOneLine(replacement),
    }));
  return { code: new Map(result.files.map(({ name, content }) => [name, content])), mutants };
}

function textAt(lines, { start, end }) {
  const text = lines.slice(start.line, end.line + 1);
  text[text.length - 1] = text.at(-1).slice(0, end.column);
  text[0] = text[0].slice(start.column);
  return onOneLine(text.join('\n'));
}

function onOneLine(text) {
  return text.replaceAll(/\s+/g, ' ');
}
