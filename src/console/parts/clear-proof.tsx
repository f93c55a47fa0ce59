// The proof of one clear as it arrives: each host says when nothing that matches could be served any more.

import type { JSX } from "preact";
import type { ClearInstance, ClearState } from "../../wire/customer/clear.ts";
import { at } from "../api.ts";
import type { FleetInstance } from "../../wire/customer/fleet.ts";
import { useAsked } from "../asked.ts";
import { clearWords, proofWords } from "../clear-words.ts";
import {
  hostName,
  linkWords,
  siteName,
  type LinkStanding,
  useFleet,
  useStanding,
} from "../fleet.ts";
import { useIsLive } from "../live.ts";
import { count, seconds } from "../words.ts";
import { Answer, Badge, Panel, Table, type Tone } from "./pieces.tsx";

/** Receipts are told as they come. Where nothing is told, proof is asked for each second. */
const [laterMs, soonMs] = [5_000, 1_000];

export function ClearProof({
  domain,
  id,
}: {
  readonly domain: string;
  readonly id: string;
}): JSX.Element {
  const asked = useAsked<ClearState>(at`/clear-accelerator-cache/${domain}/${id}/`, {
    topics: ["clears"],
    domain,
    everyMs: useIsLive() ? laterMs : soonMs,
  });
  const fleet = useFleet();
  const standing = useStanding(fleet);
  const names = new Map(
    (fleet.value?.sites ?? []).flatMap((site) => [
      [`site ${site.deployment_site_id}`, siteName(site)] as const,
      ...site.instances.map((one) => [one.instance_id, hostName(one)] as const),
    ]),
  );
  const links = new Map(
    (fleet.value?.sites ?? []).flatMap(({ instances }) =>
      instances.map((one) => [one.instance_id, one.link] as const),
    ),
  );
  return (
    <Panel title="Proof" takesFocus>
      <Answer asked={asked}>
        {(clear) => {
          const { tone, text } = proofWords(clear);
          return (
            <>
              <p>
                Clear of {clearWords(clear)}: <Badge tone={tone}>{text}</Badge>
              </p>
              <Table
                caption="Proof by host"
                heads={[
                  "Host",
                  "State",
                  "Cleared",
                  "Kept out",
                  "Not served after",
                  "Searched again",
                  "Site",
                ]}
              >
                {clear.deployments.flatMap((site) =>
                  site.instances.map((instance) => (
                    <ProofRow
                      key={instance.instance_id}
                      site={
                        names.get(`site ${site.deployment_site_id}`) ??
                        String(site.deployment_site_id)
                      }
                      host={names.get(instance.instance_id) ?? instance.instance_id.slice(0, 8)}
                      instance={instance}
                      link={links.get(instance.instance_id)}
                      standing={standing}
                    />
                  )),
                )}
              </Table>
              <p class="quiet">
                Kept out: answers that were on their way from the origin when the clear came, and
                were not stored.
              </p>
            </>
          );
        }}
      </Answer>
    </Panel>
  );
}

const tones: Readonly<Record<ClearInstance["state"], Tone>> = {
  applied: "good",
  pending: "warn",
  failed: "bad",
};

/** Whether a host that has not proved it is there, and what it does. */
function pendingWords(
  { connected, last_seen: seen }: ClearInstance,
  link: FleetInstance["link"] | undefined,
  standing: LinkStanding,
): string {
  if (!standing.isKnown) return "whether it is connected is not known";
  if (connected === true) return "connected; it is clearing";
  if (link === "polling") return "polling; it clears when it asks next";
  const { text } = linkWords({ link: "none", last_seen: seen }, standing);
  return `${text}; it clears before it serves again`;
}

function ProofRow({
  site,
  host,
  instance,
  link,
  standing,
}: {
  readonly site: string;
  readonly host: string;
  readonly instance: ClearInstance;
  /** Undefined where the fleet does not have the host. */
  readonly link: FleetInstance["link"] | undefined;
  readonly standing: LinkStanding;
}): JSX.Element {
  const {
    state,
    matched,
    blocked_in_flight: keptOut,
    took_ms: took,
    verified,
    error,
    widened,
  } = instance;
  return (
    <tr>
      <th scope="row">{host}</th>
      <td class={state === "applied" ? "" : "long"}>
        <Badge tone={tones[state]}>{state === "applied" ? "proved" : state}</Badge>{" "}
        {state === "pending" && pendingWords(instance, link, standing)}
        {error} {widened === true && "more was cleared than named"}
      </td>
      <td>{matched === null ? "–" : count(matched)}</td>
      <td>{keptOut === null ? "–" : count(keptOut)}</td>
      <td>{took === null ? "–" : seconds(took / 1_000)}</td>
      <td>{verified === null ? "–" : verified ? "nothing found" : "something was found"}</td>
      <td class="quiet">{site}</td>
    </tr>
  );
}
