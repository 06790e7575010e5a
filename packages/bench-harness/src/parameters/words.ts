/** For the start of a sentence or a column's head. */
export function capitalize(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Names that say too little when they are parted into words. */
const names: Readonly<Record<string, string>> = { sweepsEager: 'eager steps in turn with compiled ones' };

/** A name of a program's as words: `peerAttention` as `peer attention`. */
export function inWords(name: string): string {
  if (Object.hasOwn(names, name)) return names[name]!;
  return name.replaceAll(/(?<=[a-z\d])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
