// Prepares text from strangers for a request record: readable, bounded and whole Unicode, so that any JSON
// reader takes it.

// oxlint-disable-next-line no-control-regex -- control characters are what is replaced.
const control = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/;
/** To replace calls V8's runtime, where to look does not; hardly a text has one. */
const controls = new RegExp(control, "g");

/**
 * `text` is header text as Node gives it, one character a byte. UTF-8 is decoded if it is whole; control
 * characters become `\xNN`; text longer than `charsMax` (UTF-16 units) is cut, never within a surrogate pair.
 */
export function recordText(text: string, charsMax: number): string {
  const whole = decoded(text);
  const readable = control.test(whole) ? whole.replaceAll(controls, replaced) : whole;
  if (readable.length <= charsMax) return readable.toWellFormed();
  const cut = readable.slice(0, charsMax);
  return (/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut).toWellFormed();
}

function replaced(char: string): string {
  const code = char.charCodeAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : " ";
}

function decoded(text: string): string {
  if (!/[\x80-\xff]/.test(text) || /[\u0100-\uffff]/.test(text)) return text;
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return text;
  }
}
