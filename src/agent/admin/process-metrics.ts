// Metrics of the agent's own process: its release and start, what it uses, how far its main loop lags.

import { monitorEventLoopDelay } from "node:perf_hooks";
import { createMetrics, type Registry } from "../../base/metrics.ts";
import type { Health } from "../../base/health.ts";
import { openFilesCounter } from "./host-watch.ts";

export const processMetrics = {
  accel_agent_build_info: {
    kind: "gauge",
    help: "Always 1; the release is the label.",
    labels: ["version"],
  },
  accel_agent_process_start_time_seconds: {
    kind: "gauge",
    help: "When this process started, in seconds since the epoch.",
  },
  accel_agent_process_resident_memory_bytes: {
    kind: "gauge",
    help: "Resident memory of the process, all threads.",
  },
  accel_agent_process_cpu_seconds: {
    kind: "gauge",
    help: "CPU time used since the start, all threads.",
  },
  accel_agent_thread_loop_delay_seconds: {
    kind: "gauge",
    help: "99th percentile of the main thread's event loop delay since the last scrape.",
  },
  accel_agent_health_warnings: {
    kind: "gauge",
    help: "Health warnings in force, by severity.",
    labels: ["severity"],
  },
  accel_agent_warning: {
    kind: "gauge",
    help: "Health warnings in force, by code and severity; docs/warnings.md says what each means. A code without a warning has no series.",
    labels: ["code", "severity"],
  },
  accel_agent_process_open_fds: {
    kind: "gauge",
    help: "Files and sockets that the process has open.",
  },
  accel_agent_process_max_fds: {
    kind: "gauge",
    help: "Files and sockets that the process may have open (LimitNOFILE).",
  },
} as const;

/** Starts the metrics. Call `refresh` before each scrape. */
export function startProcessMetrics(
  registry: Registry,
  health: Health,
  version: string,
  startedAtMs: number,
): { refresh(): void } & Disposable {
  const metrics = createMetrics(processMetrics, registry);
  const openFiles = openFilesCounter();
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  metrics.accel_agent_build_info.set({ version }, 1);
  metrics.accel_agent_process_start_time_seconds.set(startedAtMs / 1_000);
  return {
    refresh() {
      metrics.accel_agent_process_resident_memory_bytes.set(process.memoryUsage.rss());
      const { user, system } = process.cpuUsage();
      metrics.accel_agent_process_cpu_seconds.set((user + system) / 1e6);
      metrics.accel_agent_thread_loop_delay_seconds.set(
        delay.count === 0 ? 0 : delay.percentile(99) / 1e9,
      );
      delay.reset();
      for (const severity of ["info", "warning", "error"] as const) {
        const count = health.list().filter((warning) => warning.severity === severity).length;
        metrics.accel_agent_health_warnings.set({ severity }, count);
      }
      metrics.accel_agent_warning.reset();
      for (const { code, severity } of health.list())
        metrics.accel_agent_warning.inc({ code, severity });
      const files = openFiles();
      if (files === undefined) return;
      metrics.accel_agent_process_open_fds.set(files.open);
      metrics.accel_agent_process_max_fds.set(files.max);
    },
    [Symbol.dispose]: () => void delay.disable(),
  };
}
