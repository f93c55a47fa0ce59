// What was typed and is not stored yet. It stays while other pages are looked at, and ends with the session.

import { useState } from "preact/hooks";

const drafts = new Map<string, string>();

window.addEventListener("beforeunload", (event) => {
  if (drafts.size > 0) event.preventDefault();
});

export function forgetDrafts(): void {
  drafts.clear();
}

/** The draft of one thing; undefined: there is none. */
export function useDraft(of: string): [text: string | undefined, set: (text?: string) => void] {
  const [, redraw] = useState(0);
  return [
    drafts.get(of),
    (changed) => {
      if (changed === undefined) drafts.delete(of);
      else drafts.set(of, changed);
      redraw((before) => before + 1);
    },
  ];
}
