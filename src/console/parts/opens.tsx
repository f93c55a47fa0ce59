// What is shown, and asked for, only once somebody opens it.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

export function Opens({
  title,
  children,
}: {
  readonly title: string;
  readonly children: () => ComponentChildren;
}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="opens" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && children()}
    </details>
  );
}
