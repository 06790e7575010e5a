/** Control codes but for tabs and line breaks, marks that turn the direction of text, and halves of characters. */
const UNPRINTABLE = /(?![\t\n\r])[\p{Cc}\p{Cs}\p{Bidi_Control}\ufffe\uffff]/gu;

/**
 * A text as it may appear in a terminal, an XML document or a table: what does not print is a replacement character.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '\ufffd');
}

/** JSON of the same value, with what does not print spelled in letters. */
export function printableJson(json: string): string {
  return json.replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
