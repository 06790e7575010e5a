/** Bytes as the characters that stand for them in a vocabulary of bytes: GPT-2's, each of which can be seen. */
export const byteCharacters: readonly string[] = (() => {
  const isSeen = (byte: number) => (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
  let unseen = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isSeen(byte) ? byte : unseen++));
})();

export function charactersOf(bytes: Uint8Array): string {
  let text = '';
  for (let i = 0; i < bytes.length; i++) text += byteCharacters[bytes[i]!]!;
  return text;
}
