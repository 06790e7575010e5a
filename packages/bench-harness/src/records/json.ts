/** What JSON can hold. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
/** An object of what JSON can hold. */
export type JsonObject = { readonly [key: string]: Json };

/** JSON with sorted keys, so that equal values give equal text. Members that are undefined are left out. */
export function canonicalJson(value: Json): string {
  return JSON.stringify(value, (_key, member: Json) => (isObject(member) ? sortKeys(member) : member));
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sortKeys(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
