// Names and texts that strangers chose, made so that nothing in them hides or rearranges what stands beside it. Pure.

/**
 * Controls, line and paragraph separators, lone surrogates, marks of direction and whatever else has no looks of
 * its own. The two selectors that choose between the looks of an emoji change nothing else, and stay.
 */
const unseen =
  /(?![\uFE0E\uFE0F])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** Writes each character that cannot be seen as `‹U+202E›`. */
export function visibleText(text: string): string {
  return text.replace(unseen, codeOf);
}

/** The same for a text of several lines, whose ends stay. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visibleText).join("\n");
}

function codeOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
}
