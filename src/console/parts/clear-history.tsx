// The clears of a domain, the newest first.

import type { JSX } from "preact";
import type { ClearRecord } from "../../wire/customer/clear.ts";
import { at } from "../api.ts";
import { clearWords, proofWords } from "../clear-words.ts";
import { usePages } from "../pages-asked.ts";
import { Badge, Button, Note, Panel, Table, Time } from "./pieces.tsx";

export function ClearHistory({
  domain,
  onOpen,
}: {
  readonly domain: string;
  readonly onOpen: (id: string) => void;
}): JSX.Element {
  const { items, failure, more } = usePages<ClearRecord>(
    `${at`/clear-accelerator-cache/${domain}/`}?order=newest&limit=25`,
    {
      topics: ["clears"],
      domain,
    },
  );
  return (
    <Panel title="Clears so far">
      {failure !== undefined && <Note tone="bad">{failure.message}</Note>}
      {items?.length === 0 && <p class="quiet">Nothing was cleared yet.</p>}
      {items !== undefined && items.length > 0 && (
        <Table caption="Clears so far" heads={["When", "What", "Proof", ""]}>
          {items.map((clear) => {
            const { tone, text } = proofWords(clear);
            return (
              <tr key={clear.clear_id}>
                <td>
                  <Time at={clear.when_created} />
                </td>
                <td class="long">
                  {clearWords(clear)}
                  {clear.domain !== domain && ` of ${clear.domain}`}
                </td>
                <td>
                  <Badge tone={tone}>{text}</Badge>
                </td>
                <td>
                  <Button
                    onClick={() => onOpen(clear.clear_id)}
                    label={`Proof of ${clearWords(clear)}`}
                  >
                    Proof
                  </Button>
                </td>
              </tr>
            );
          })}
        </Table>
      )}
      {more !== undefined && <Button onClick={more}>Older ones</Button>}
    </Panel>
  );
}
