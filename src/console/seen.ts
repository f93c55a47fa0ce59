// Whether something of a page has come into view: until then nothing is asked for it.

import { useEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

export function useSeen(place: RefObject<Element | null>): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (place.current === null) return undefined;
    const watch = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
    });
    watch.observe(place.current);
    return () => watch.disconnect();
  }, [place]);
  return isSeen;
}
