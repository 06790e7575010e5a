import { escaper } from './text-form.ts';

/** Text for HTML and XML, in an element as in a quoted attribute. */
export const escapeXml = escaper({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' });
