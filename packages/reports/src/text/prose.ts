/** How a markup language writes a piece of prose; texts come as they were written, codes and bold without their marks. */
export interface ProseForm {
  text(text: string): string;
  code(code: string): string;
  bold(content: string): string;
  /** Of a link that leads out of the document; others are written as their text. */
  link(address: string, content: string): string;
}

const PIECE = /`([^`]+)`|\*\*(.+?)\*\*|\[((?:[^\]`]|`[^`]+`)+)\]\(((?:https?:\/\/|#)[^\s)<]+)\)/;

/** Prose with `code`, **bold** and [links](https://example.org) in a markup language. */
export function proseIn(form: ProseForm, text: string): string {
  const found = PIECE.exec(text);
  if (found === null) return text === '' ? '' : form.text(text);
  const [piece, code, bold, label, address] = found;
  const before = text.slice(0, found.index);
  const after = text.slice(found.index + piece.length);
  return (before === '' ? '' : form.text(before)) + written() + proseIn(form, after);

  function written(): string {
    if (code !== undefined) return form.code(code);
    if (bold !== undefined) return form.bold(proseIn(form, bold));
    const content = proseIn(form, label!);
    return address!.startsWith('#') ? content : form.link(address!, content);
  }
}
