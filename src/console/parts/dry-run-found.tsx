// What a clear would hit, and where a pattern is wrong: shown while it is typed.

import type { JSX } from "preact";
import type { DryRunState } from "../dry-run.ts";
import { useFleet, useStanding } from "../fleet.ts";
import { silentHosts } from "../silent-hosts.ts";
import { byteCount, several } from "../words.ts";
import { Note, Table, Time } from "./pieces.tsx";

const samplesMost = 20;

export function DryRunFound({ isAsking, value, failure }: DryRunState): JSX.Element {
  return (
    <div aria-live="polite" aria-busy={isAsking}>
      {isAsking && <p class="quiet">Looking …</p>}
      {failure !== undefined && <Faults failure={failure} />}
      {value !== undefined && failure === undefined && <Hits value={value} />}
    </div>
  );
}

function Faults({
  failure,
}: {
  readonly failure: NonNullable<DryRunState["failure"]>;
}): JSX.Element {
  if (failure.errors.length === 0) return <Note tone="bad">{failure.message}</Note>;
  return (
    <div class="note bad" role="alert">
      {failure.errors.map(({ path, message, pattern, position, did_you_mean: meant }) => (
        <div key={`${path} ${message}`}>
          {message}
          {pattern !== undefined && position !== undefined && (
            <pre class="fault">{`${pattern}\n${" ".repeat(position)}↑`}</pre>
          )}
          {meant !== undefined && (
            <>
              {" "}
              Did you mean <code>{meant}</code>?
            </>
          )}
        </div>
      ))}
    </div>
  );
}

function Hits({ value }: { readonly value: NonNullable<DryRunState["value"]> }): JSX.Element {
  const { deployments } = value;
  const fleet = useFleet();
  const standing = useStanding(fleet);
  const silent = silentHosts(deployments, fleet.value?.sites ?? [], standing);
  const samples = deployments.flatMap(({ samples: some }) => some);
  const hosts = deployments.flatMap(({ instances }) => instances);
  const answered = hosts.filter(({ state }) => state === "answered");
  const matched = answered.reduce((sum, one) => sum + (one.matched ?? 0), 0);
  const isSilent = hosts.length === 0 || answered.length < hosts.length;
  return (
    <>
      <p>
        {answered.length > 0 && (
          <>
            <strong>{several(matched, "cached entry", "cached entries")}</strong> on{" "}
            {several(answered.length, "host")} would be cleared.{" "}
          </>
        )}
        {silent.length > 0
          ? silent.join(" ")
          : isSilent && "Hosts that cannot say now clear it all the same, before they serve again."}
      </p>
      {deployments.some(({ over_budget: isOver }) => isOver === true) && (
        <Note tone="warn">
          Matching takes too long: the clear would be widened to everything of the host or domain.
        </Note>
      )}
      {samples.length > 0 && (
        <Table
          caption="Entries that would be cleared"
          heads={["Newest entries that match", "Type", "Size", "Stored"]}
        >
          {samples
            .slice(0, samplesMost)
            .map(({ pattern, path, query, mime, size, stored_at: stored }, no) => (
              // Two hosts may hold the same entry.
              <tr key={`${no} ${pattern}`}>
                <td class="long mono">{query === "" ? path : `${path}?${query}`}</td>
                <td>{mime}</td>
                <td>{byteCount(size)}</td>
                <td>
                  <Time at={stored} isDistance />
                </td>
              </tr>
            ))}
        </Table>
      )}
    </>
  );
}
