// One request with everything that is known of it.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { RequestDetail } from "../../wire/customer/requests.ts";
import { at } from "../api.ts";
import { useAsked } from "../asked.ts";
import { hrefTo } from "../route.ts";
import { visibleText } from "../visible-text.ts";
import { Answer, Button, Panel, Time } from "./pieces.tsx";

export function RequestPanel({
  domain,
  id,
  onClose,
}: {
  readonly domain: string;
  readonly id: string;
  readonly onClose: () => void;
}): JSX.Element {
  const asked = useAsked<RequestDetail>(at`/requests/${domain}/${id}/`, {
    everyMs: 3_600_000,
  });
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => place.current?.scrollIntoView({ block: "start" }), []);
  return (
    <div ref={place}>
      <Panel title="One request" beside={<Button onClick={onClose}>Close</Button>}>
        <Answer asked={asked}>
          {({ why, ...request }) => (
            <>
              <p>{visibleText(why)}</p>
              <dl class="facts">
                {Object.entries(request).map(([name, value]) => (
                  <>
                    <dt>{name.replaceAll("_", " ")}</dt>
                    <dd class="mono">
                      {name === "when" ? <Time at={Number(value)} /> : visibleText(shown(value))}
                    </dd>
                  </>
                ))}
              </dl>
              <p>
                <a href={hrefTo(["d", domain, "logs"], { address: request.client_address })}>
                  All requests of {request.client_address}
                </a>{" "}
                ·{" "}
                <a href={hrefTo(["d", domain, "clear"], { url: request.path })}>Clear this page</a>
              </p>
            </>
          )}
        </Answer>
      </Panel>
    </div>
  );
}

function shown(value: unknown): string {
  if (value === null) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}
