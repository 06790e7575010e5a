import { printableJson } from '../text/printable.ts';
import { escapeXml } from '../text/xml.ts';

/** Prose with `code`, **bold** and [links](https://example.org); any other markup is shown as written. */
export function proseHtml(text: string): string {
  // Code is set aside while the rest is read: bold and links may hold it, and it holds neither.
  const codes: string[] = [];
  const aside = escapeXml(text).replace(/`([^`]+)`/g, (_, code: string) => `<${codes.push(code) - 1}>`);
  return phraseHtml(aside).replace(/<(\d+)>/g, (_, index: string) => `<code>${codes[Number(index)]!}</code>`);
}

/** A value inside `<script type="application/json">`: no `<`, so no `</script>` and no `<!--`. */
export function jsonHtml(value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  return printableJson(JSON.stringify(value, replacer)).replaceAll('<', '\\u003c');
}

/** The space between a number and its unit, where no line should end. */
const UNIT_GAP = /(\d) (?=(?:%|(?:[mµn]?s|[KMGT]?i?B|[GT]FLOP\/s|GB\/s)(?![\w/])))/g;

function phraseHtml(escaped: string): string {
  return escaped
    .replace(UNIT_GAP, '$1\u00a0')
    .replace(/\*\*(.+?)\*\*/g, '<strong>$1</strong>')
    .replace(/\[([^\]]+)\]\(((?:https?:\/\/|#)[^\s)<]+)\)/g, '<a href="$2">$1</a>');
}
