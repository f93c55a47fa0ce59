// How far a version is: what each deployment proved, and how the hosts voted where all or none was asked for.

import type { JSX } from "preact";
import type { ViewsetVersion } from "../../wire/customer/viewset.ts";
import { hostName, siteName, useFleet } from "../fleet.ts";
import { Badge, Note, Table, Time, type Tone } from "./pieces.tsx";

type State = ViewsetVersion["deployments"][number]["state"];

const tones: Readonly<Record<State, Tone>> = {
  applied: "good",
  pending: "warn",
  failed: "bad",
  pinned: "warn",
  absent: "plain",
  split: "bad",
};

const stateWords: Readonly<Record<State, string>> = {
  applied: "served",
  pending: "not proved yet",
  failed: "failed",
  pinned: "pinned to another version",
  absent: "no host",
  split: "could not follow",
};

export function activationWords({
  is_active: isActive,
  activation,
  fleet,
  when_obsoleted: ended,
}: ViewsetVersion): {
  readonly tone: Tone;
  readonly text: string;
} {
  if (isActive && activation !== null)
    return { tone: tones[activation], text: `active, ${stateWords[activation]}` };
  if (fleet?.state === "preparing") return { tone: "warn", text: "being prepared" };
  if (fleet?.state === "aborted") return { tone: "bad", text: "given up before it began" };
  if (fleet?.state === "returned") return { tone: "bad", text: "failed its trial" };
  return { tone: "plain", text: ended === null ? "never active" : "was active" };
}

export function Activation({ version }: { readonly version: ViewsetVersion }): JSX.Element {
  const fleet = useFleet();
  const sites = new Map(
    (fleet.value?.sites ?? []).map((site) => [site.deployment_site_id, site] as const),
  );
  const nameOf = (id: number): string => {
    const site = sites.get(id);
    return site === undefined ? String(id) : siteName(site);
  };
  return (
    <>
      <Table caption={`Deployments of ${version.name}`} heads={["Site", "State", ""]}>
        {version.deployments.map(({ deployment_site_id: id, state, error, serving }) => (
          <tr key={id}>
            <th scope="row">{nameOf(id)}</th>
            <td>
              <Badge tone={tones[state]}>{stateWords[state]}</Badge>
            </td>
            <td class="long">
              {error} {serving !== undefined && `serves ${serving.viewset_name}`}
            </td>
          </tr>
        ))}
      </Table>
      {version.fleet !== undefined && (
        <Votes
          fleet={version.fleet}
          hostOf={(id, siteId) => {
            const found = sites.get(siteId)?.instances.find((one) => one.instance_id === id);
            return found === undefined ? id.slice(0, 8) : hostName(found);
          }}
        />
      )}
    </>
  );
}

type Fleet = NonNullable<ViewsetVersion["fleet"]>;

const fleetWords: Readonly<Record<Fleet["state"], string>> = {
  preparing: "The hosts are preparing it; nothing has changed yet.",
  activated: "All hosts were ready, and it was activated on all.",
  replaced: "Another version was activated since.",
  aborted: "It was given up before anything changed.",
  returned: "Its trial failed on a host, and all went back.",
};

function Votes({
  fleet,
  hostOf,
}: {
  readonly fleet: Fleet;
  readonly hostOf: (instance: string, site: number) => string;
}): JSX.Element {
  const { state, reason, deadline, votes } = fleet;
  return (
    <>
      <Note tone={state === "aborted" || state === "returned" ? "bad" : "plain"}>
        {fleetWords[state]} {reason}{" "}
        {state === "preparing" && (
          <>
            It is given up <Time at={deadline} isDistance /> if a host is not ready.
          </>
        )}
      </Note>
      {votes.length > 0 && (
        <Table caption="Votes of the hosts" heads={["Host", "Ready", ""]}>
          {votes.map(({ instance_id: id, deployment_site_id: site, vote, reason: why }) => (
            <tr key={id}>
              <th scope="row">{hostOf(id, site)}</th>
              <td>
                <Badge tone={vote === "yes" ? "good" : vote === "no" ? "bad" : "warn"}>
                  {vote}
                </Badge>
              </td>
              <td class="long">{why}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
