// How many variants of a domain's images were made and held back, today and by day. Nothing is shown of a domain that has none.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { ImageVariants } from "../../wire/customer/image-variants.ts";
import { at } from "../api.ts";
import { useAsked } from "../asked.ts";
import { imageDays, todaysImages } from "../image-days.ts";
import { count } from "../words.ts";
import { Chart } from "./chart.tsx";
import { Answer, Note, Panel } from "./pieces.tsx";

export function ImageVariantsPanel({ domain }: { readonly domain: string }): JSX.Element | null {
  const asked = useAsked<ImageVariants>(at`/analytics/${domain}/images/`);
  if (asked.value === undefined ? asked.failure === undefined : asked.value.days.length === 0)
    return null;
  return (
    <Panel title="Images">
      <Answer asked={asked}>{(found) => <Days found={found} />}</Answer>
    </Panel>
  );
}

function Days({ found }: { readonly found: ImageVariants }): JSX.Element {
  const { times, made, heldBack } = useMemo(() => imageDays(found), [found]);
  const lines = useMemo(
    () => [
      { label: "made", values: made, colour: 3 },
      { label: "held back", values: heldBack, colour: "bad" } as const,
    ],
    [made, heldBack],
  );
  return (
    <>
      <Note tone={found.today.held_back > 0 ? "warn" : "plain"}>{todaysImages(found.today)}</Note>
      <Chart title="Variants of images by day (UTC)" times={times} lines={lines} format={count} />
    </>
  );
}
