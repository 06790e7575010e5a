// Tables that sort, filter, turn pages, and can be copied or saved. Each carries its rows as JSON.
const escapes = JSON.parse(document.getElementById('form-escapes').textContent);
const collator = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });
const LONG_TEXT = 60;
const count = (number) => number.toLocaleString('en');

class ReportTable {
  /** Brings the table in `figure` to life. */
  static attach(figure) {
    return new ReportTable(figure);
  }

  constructor(figure) {
    this.figure = figure;
    this.name = figure.dataset.name;
    this.pageRows = Number(figure.dataset.pageRows);
    this.data = JSON.parse(figure.querySelector('script.data').textContent);
    this.body = figure.querySelector('tbody');
    this.heads = [...figure.querySelectorAll('th')];
    this.failed = new Set(this.data.failed);
    this.sorting = { column: -1, direction: 'none' };
    this.terms = [];
    this.page = 0;
    this.rows = Array.from({ length: this.data.rowCount }, (_, row) => row);
    this.haystacks = [];
    this.listen();
    this.showRange();
  }

  listen() {
    this.heads.forEach((head, column) =>
      head.querySelector('button').addEventListener('click', () => this.sortBy(column)),
    );
    this.figure.querySelector('input[type=search]')?.addEventListener('input', (event) => {
      this.terms = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.arrange();
    });
    this.figure.querySelector('.unfold')?.addEventListener('click', () => this.unfold());
    for (const button of this.figure.querySelectorAll('[data-turn]')) {
      button.addEventListener('click', () => this.turnTo(this.page + Number(button.dataset.turn)));
    }
    for (const button of this.figure.querySelectorAll('[data-copy]')) {
      button.addEventListener('click', () => this.copy(button.dataset.copy));
    }
    for (const button of this.figure.querySelectorAll('[data-save]')) {
      button.addEventListener('click', () => this.save(button.dataset.save));
    }
  }

  text(row, column) {
    const { texts, field } = this.data.columns[column];
    return texts ? texts[row] : this.data.fields[field].values[row];
  }

  /** Ascending, then descending, then as measured. */
  sortBy(column) {
    const next = { none: 'ascending', ascending: 'descending', descending: 'none' };
    const direction = this.sorting.column === column ? next[this.sorting.direction] : 'ascending';
    this.sorting = { column, direction };
    this.heads.forEach((head, index) =>
      head.setAttribute('aria-sort', index === column ? direction : 'none'),
    );
    this.arrange();
  }

  arrange() {
    this.rows = [];
    for (let row = 0; row < this.data.rowCount; row += 1) if (this.matches(row)) this.rows.push(row);
    if (this.sorting.direction !== 'none') this.rows.sort((a, b) => this.compare(a, b) || a - b);
    this.turnTo(0);
  }

  matches(row) {
    if (this.terms.length === 0) return true;
    this.haystacks[row] ??= this.data.columns
      .map((_, column) => this.text(row, column))
      .join('\n')
      .toLowerCase();
    return this.terms.every((term) => this.haystacks[row].includes(term));
  }

  /** Rows that failed come last, and before them those without a value, whatever the direction. */
  compare(a, b) {
    const failed = this.failed.has(a) - this.failed.has(b);
    if (failed !== 0) return failed;
    const { field, measured } = this.data.columns[this.sorting.column];
    const [first, second] = [a, b].map((row) => {
      const value = this.data.fields[field].values[row];
      return measured ? Number(value ?? NaN) : value;
    });
    const isAbsent = (value) => value == null || Number.isNaN(value);
    if (isAbsent(first) || isAbsent(second)) return isAbsent(first) - isAbsent(second);
    const order = measured ? first - second : collator.compare(first, second);
    return this.sorting.direction === 'ascending' ? order : -order;
  }

  turnTo(page) {
    this.page = Math.max(0, Math.min(page, Math.ceil(this.rows.length / this.pageRows) - 1));
    const first = this.page * this.pageRows;
    const shown = this.rows.slice(first, first + this.pageRows);
    this.body.replaceChildren(...shown.map((row) => this.drawRow(row)));
    this.showRange();
  }

  /** Shows what a long table hides after its first rows. */
  unfold() {
    this.figure.classList.remove('folded');
    this.showRange();
  }

  showRange() {
    const { length } = this.rows;
    const first = this.page * this.pageRows;
    const last = Math.min(first + this.pageRows, length);
    const pager = this.figure.querySelector('.pager');
    const isFolded = this.figure.classList.contains('folded');
    const unfold = this.figure.querySelector('.unfold');
    if (unfold) {
      unfold.hidden = !isFolded || length <= Number(unfold.dataset.foldedRows);
      unfold.textContent = `All ${count(length)} rows`;
    }
    pager.hidden = isFolded || length <= this.pageRows;
    pager.querySelector('.range').textContent = `${count(first + 1)}–${count(last)} of ${count(length)}`;
    pager.querySelector('[data-turn="-1"]').disabled = this.page === 0;
    pager.querySelector('[data-turn="1"]').disabled = last === length;
    this.say(this.terms.length > 0 ? `${count(length)} of ${count(this.data.rowCount)} rows` : '');
  }

  /** The same markup as `rowHtml` in src/html/table.ts. */
  drawRow(row) {
    const line = document.createElement('tr');
    const errors = this.data.fields.find(({ key }) => key === 'error');
    const statuses = this.data.fields.find(({ key }) => key === 'status');
    if (this.failed.has(row)) {
      line.className = 'failed';
      line.title = errors?.values[row] ?? statuses.values[row];
    }
    line.append(...this.data.columns.map((_, column) => this.drawCell(row, column)));
    return line;
  }

  drawCell(row, column) {
    const { className, measured, field } = this.data.columns[column];
    const value = this.data.fields[field].values[row];
    const text = this.text(row, column);
    const cell = document.createElement('td');
    cell.className = className;
    const isStatus = cell.classList.contains('status');
    const isEmpty = text === '–' || (this.failed.has(row) && (measured ? value == null : isStatus));
    cell.classList.toggle('empty', isEmpty);
    if (cell.classList.contains('share') && typeof value === 'number') {
      const bar = document.createElement('i');
      bar.style.setProperty('--share', Math.max(0, Math.min(1, value)));
      cell.append(bar);
    }
    const [mean, deviation] = measured ? String(text).split(' ± ', 2) : [text];
    cell.append(measured ? mean : words(String(mean), this.data.columns[column].shown));
    if (deviation) {
      const span = document.createElement('span');
      span.className = 'deviation';
      span.textContent = ` ± ${deviation}`;
      cell.append(span);
    }
    return cell;
  }

  async copy(form) {
    const text = form === 'CSV' ? this.csv() : this.markup(form);
    const isCopied = await writeClipboard(text);
    this.say(isCopied ? `Copied ${count(this.rows.length)} rows as ${form}` : 'The browser refused to copy');
  }

  save(format) {
    const text = format === 'CSV' ? this.csv() : this.json();
    const type = format === 'CSV' ? 'text/csv' : 'application/json';
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = `${this.name}.${format.toLowerCase()}`;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  markup(form) {
    const { begin, rowStart, cellSeparator, rowEnd, end, longestCell } = this.data.forms[form];
    const escape = escaper(escapes[form]);
    const lines = this.rows.map((row) => {
      const cells = this.data.columns.map((_, column) =>
        escape(shorten(String(this.text(row, column)), longestCell)),
      );
      return rowStart + cells.join(cellSeparator) + rowEnd;
    });
    return begin + lines.join('') + end;
  }

  csv() {
    // As `csvField` in src/text/csv.ts: a text that would be a formula begins with an apostrophe.
    const isFormula = (value) => /^[=+\-@\t\r]/.test(value) && value !== '-Infinity';
    const plain = (value) =>
      typeof value === 'string' && isFormula(value) ? `'${value}` : String(value ?? '');
    const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    const line = (row) => this.data.fields.map(({ values }) => quoted(plain(values[row]))).join(',');
    return [this.data.csvHeader, ...this.rows.map(line)].map((text) => `${text}\r\n`).join('');
  }

  json() {
    const record = (row) =>
      Object.fromEntries(this.data.fields.map(({ key, values }) => [key, values[row] ?? null]));
    return `${JSON.stringify(this.rows.map(record), null, 2)}\n`;
  }

  say(message) {
    this.figure.querySelector('.tools output').textContent = message;
  }
}

/** What is shown of a text, and the whole under the pointer; as `wordsHtml` in src/html/table.ts. */
function words(text, shown) {
  const isShort = Object.hasOwn(shown, text);
  if (!isShort && text.length <= LONG_TEXT) return text;
  const short = document.createElement('span');
  short.className = isShort ? 'short' : 'lines';
  short.title = text;
  short.textContent = isShort ? shown[text] : text;
  return short;
}

/** Replaces every key of `replacements`, the longest first. */
function escaper(replacements) {
  const keys = Object.keys(replacements).sort((a, b) => b.length - a.length);
  const pattern = new RegExp(keys.map((key) => key.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g');
  return (text) => text.replace(pattern, (found) => replacements[found]);
}

/** As `shorten` in src/text/text-form.ts: two thirds of a long text from its beginning. */
function shorten(text, longest = Infinity) {
  if (text.length <= longest) return text;
  const head = Math.ceil((longest * 2) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (longest - head - 1))}`;
}

async function writeClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages from a plain http address may copy only from a selection.
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand('copy');
    area.remove();
    return isCopied;
  }
}

document.documentElement.classList.add('scripted');
for (const figure of document.querySelectorAll('figure.table')) ReportTable.attach(figure);
