// Exact words: a text of any bytes as one word of FTS5.
//
// Bytes a-y and 0-9 stand for themselves; every other byte is `z` and two lower-case hex digits: `/blog/A-1`
// is `z2fblogz2fz41z2d1`. So the word is one token of ASCII letters and digits for unicode61, and nothing in
// it is folded. Two texts have the same word only if they have the same bytes. The word of the beginning of a
// text is the beginning of its word, so a prefix query on it is an exact prefix.

const utf8 = new TextEncoder();

/** The spelling of each byte. */
const spelled: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const letter = String.fromCharCode(byte);
  return /[a-y0-9]/.test(letter) ? letter : `z${byte.toString(16).padStart(2, "0")}`;
});

/** Returns the exact word for the UTF-8 bytes of a string. */
export function exactWord(text: string | Uint8Array): string {
  if (typeof text === "string" && /^[a-y0-9]*$/.test(text)) return text;
  let word = "";
  for (const byte of typeof text === "string" ? utf8.encode(text) : text)
    word += spelled[byte] ?? "";
  return word;
}
