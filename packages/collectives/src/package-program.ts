/** A program of this package beside its top modules: `src/NAME.ts` or, once built, `dist/NAME.js`. */
export function packageProgram(name: string): URL {
  return new URL(`./${name}.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url);
}
