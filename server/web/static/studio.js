// client/src/errors.ts
var e = /* @__PURE__ */ new Set([
	"draining",
	"overloaded",
	"too_slow"
]), t = 600, n = class extends Error {
	code;
	subject;
	found;
	expected;
	reason;
	retryAfterMs;
	constructor(e, { subject: t, found: n = "", expected: r = "", reason: i = "", retryAfterMs: a = null }) {
		let o = [n && `found ${n}`, r && `expected ${r}`].filter(Boolean).join(", ");
		super(o ? `${t}: ${o}` : t), this.name = "MimiError", this.code = e, this.subject = t, this.found = n, this.expected = r, this.reason = i, this.retryAfterMs = a;
	}
};
function r(e, t, r = "", i = "") {
	return new n(e, {
		subject: t,
		found: r,
		expected: i
	});
}
function i(e) {
	let r = (n) => typeof e[n] == "string" ? e[n].slice(0, t) : "", i = e.retry_after_ms;
	return new n(r("code") || "service", {
		subject: r("subject") || r("message") || "service",
		found: r("found"),
		expected: r("expected"),
		reason: r("reason"),
		retryAfterMs: Number.isSafeInteger(i) && i >= 0 ? i : null
	});
}
async function a(e) {
	let t = await e.json().catch(() => null);
	return c(t) && c(t.error) ? i(t.error) : c(t) && t.draining === !0 ? new n("draining", {
		subject: "service",
		found: "one that goes down",
		retryAfterMs: 0
	}) : r("unavailable", "service", `HTTP status ${e.status}`, "a service that speaks mimi.v1 at this address");
}
function o(e, t) {
	return /^[a-z_]+$/.test(t) ? i({
		code: t,
		subject: "connection",
		found: `closed with ${e}`
	}) : r("unavailable", "connection", e === 1006 || e === 1005 ? "a connection that was cut" : `closed with ${e} ${t}`.trim(), "one that lasts until the stream is closed");
}
function s(t) {
	return e.has(t.code) || t.retryAfterMs !== null;
}
function c(e) {
	return typeof e == "object" && !!e && !Array.isArray(e);
}
// client/src/access.ts
var l = "/v1/stream";
function u(e, t = "") {
	let n = h(e);
	return n.protocol = n.protocol.replace("http", "ws"), n.pathname = n.pathname === "/" ? l : n.pathname, t && n.searchParams.set("token", t), n;
}
function d(e, t) {
	let n = h(e);
	return n.protocol = n.protocol.replace("ws", "http"), n.pathname = n.pathname.replace(/\/v1\/stream$/, "/").replace(/\/*$/, `/${t}`), n.search = "", n;
}
function f(e) {
	return e ? { Authorization: `Bearer ${String.fromCharCode(...new TextEncoder().encode(e))}` } : {};
}
async function p(e, t, n = "stream") {
	let r = d(e, "v1/token");
	r.searchParams.set("scope", n);
	let i;
	try {
		i = await fetch(r, {
			method: "POST",
			headers: f(t),
			cache: "no-store"
		});
	} catch (t) {
		throw m(e, t);
	}
	if (!i.ok) throw await a(i);
	return (await i.json()).token;
}
function m(e, t) {
	let n = t instanceof Error ? t.message : String(t);
	return r("unavailable", String(e).split("?", 1)[0] ?? "", n, "a service that can be reached");
}
function h(e) {
	try {
		let t = new URL(e);
		if (/^(http|ws)s?:$/.test(t.protocol) && !t.hash) return t;
	} catch {}
	throw r("setting", "url", `'${e}'`, "ws://HOST:PORT or wss://HOST:PORT, the path /v1/stream may be left out");
}
// client/src/messages.ts
var ee = "mimi.v1", te = 1, g = 16, ne = 1, re = 2, ie = 64;
function ae(e) {
	let t;
	try {
		t = JSON.parse(e);
	} catch {
		throw b("text message", e);
	}
	if (!c(t)) throw b("text message", e);
	let n = Object.hasOwn(se, String(t.type)) ? se[String(t.type)] : void 0;
	return n ? n(t) : null;
}
function oe(e, t) {
	if (e.byteLength < g) throw b("frame", `${e.byteLength} bytes`);
	let n = new DataView(e), [r, i, a] = [
		n.getUint8(0),
		n.getUint8(1),
		n.getUint16(2, !0)
	], o = e.byteLength - g;
	if (r !== te) throw b("frame.version", String(r));
	let s = {
		type: "frame",
		sequence: n.getUint32(4, !0),
		position: Number(n.getBigUint64(8, !0)),
		latencyMs: null
	}, c = e.slice(g);
	if (i === ne && o === 2 * a) return {
		...s,
		codes: new Uint16Array(c)
	};
	if (i === re && a === 1 && o % (t === "s16le" ? 2 : 4) == 0) return {
		...s,
		pcm: t === "s16le" ? Float32Array.from(new Int16Array(c), (e) => e / 32768) : new Float32Array(c)
	};
	throw b("frame", `kind ${i}, width ${a}, ${o} bytes`);
}
var se = {
	ready: ce,
	flushed: (e) => ({
		type: "flushed",
		frames: y(e, "frames"),
		samples: y(e, "samples"),
		paddedSamples: y(e, "padded_samples"),
		receivedSamples: y(e, "received_samples"),
		sentSamples: y(e, "sent_samples"),
		flushes: y(e, "flushes")
	}),
	reset_done: (e) => ({
		type: "reset_done",
		epoch: y(e, "epoch")
	}),
	checkpoint: (e) => ({
		type: "checkpoint",
		position: y(e, "position"),
		epoch: y(e, "epoch")
	}),
	warning: (e) => ({
		type: "warning",
		code: String(e.code),
		message: String(e.message)
	}),
	goaway: (e) => ({
		type: "goaway",
		timeLeftMs: y(e, "time_left_ms"),
		resumeToken: _(e.resume_token)
	}),
	error: (e) => ({
		type: "error",
		error: i(e)
	})
};
function ce(e) {
	let [t, n, r, i] = [
		v(e, "settings"),
		v(e, "codec"),
		v(e, "limits"),
		v(e, "model")
	], a = (t) => t in e ? y(e, t) : 0;
	return {
		type: "ready",
		session: String(e.session),
		model: {
			name: String(i.name),
			sha256: String(i.sha256),
			weight_class: String(i.weight_class),
			numerics: String(i.numerics)
		},
		settings: t,
		levels: y(t, "levels", 1),
		sampleRateHz: y(n, "sample_rate", 1),
		frameSamples: y(n, "frame_samples", 1),
		codebookEntries: y(n, "codebook_entries", 1),
		creditFrames: y(e, "credit_frames", 1),
		maxMessageBytes: y(r, "max_message_bytes", 1),
		resumed: e.resumed === !0,
		resumeToken: _(e.resume_token),
		resumeGraceMs: a("resume_grace_ms"),
		epoch: a("epoch"),
		position: a("position"),
		flushes: a("flushes"),
		resampler: _(e.resampler)
	};
}
function _(e) {
	return typeof e == "string" ? e : null;
}
function v(e, t) {
	let n = e[t];
	if (!c(n)) throw b(t, JSON.stringify(n));
	return n;
}
function y(e, t, n = 0) {
	let r = e[t];
	if (!Number.isSafeInteger(r) || r < n) throw b(t, JSON.stringify(r));
	return r;
}
function b(e, t) {
	return r("unavailable", `service: ${e}`, (t ?? "nothing").slice(0, ie), "a message of mimi.v1");
}
// client/src/timing.ts
var le = 2048, ue = 1e-6, de = class {
	#e;
	#t = -1;
	#n = 0;
	constructor(e) {
		this.#e = e;
	}
	delayMs(e, t, n) {
		return e > this.#t && (this.#t = e, this.#n = n), e < this.#t ? 0 : Math.max(0, this.#n + 1e3 * t / this.#e - n);
	}
}, fe = class {
	sentFrames = 0;
	answeredFrames = 0;
	#e;
	#t = [];
	#n = 0;
	#r = [];
	constructor(e) {
		this.#e = e;
	}
	restart(e = 0) {
		this.#n = e === 0 ? 0 : this.#n, this.#r = [], this.sentFrames = e / this.#e + this.#n, this.answeredFrames = e === 0 ? 0 : Math.min(this.answeredFrames, Math.floor(this.sentFrames));
	}
	sent(e, t) {
		this.sentFrames += e / this.#e, this.#r.push({
			frames: this.sentFrames,
			atMs: t
		});
	}
	flushSent(e) {
		let t = Math.ceil(this.sentFrames - ue);
		this.#n += Math.max(0, t - this.sentFrames), this.sentFrames = Math.max(t, this.sentFrames), this.#r.push({
			frames: this.sentFrames,
			atMs: e
		});
	}
	answered(e, t) {
		this.answeredFrames = Math.max(this.answeredFrames, e + 1);
		let n = 0;
		for (; (this.#r[n]?.frames ?? Infinity) < e + 1 - ue;) n += 1;
		this.#r.splice(0, n);
		let [r] = this.#r;
		return r ? (this.#t.push(t - r.atMs), this.#t.length > le && this.#t.shift(), t - r.atMs) : null;
	}
	get inFlightFrames() {
		return Math.max(0, this.sentFrames - this.answeredFrames);
	}
	percentileMs(e) {
		let t = [...this.#t].sort((e, t) => e - t);
		return t[Math.min(t.length - 1, Math.floor(e / 100 * t.length))] ?? null;
	}
};
function* pe(e, t, n = Math.random) {
	for (let r = e;; r = Math.min(t, 2 * r)) yield n() * r;
}
// client/src/waiting.ts
function x() {
	let e = {};
	return e.promise = new Promise((t, n) => {
		e.resolve = t, e.reject = n;
	}), e;
}
var me = class {
	#e = x();
	wait() {
		return this.#e.promise;
	}
	notify() {
		this.#e.resolve(), this.#e = x();
	}
}, he = 1e3, ge = 1011, _e = [
	1001,
	1005,
	1006,
	1012,
	1013
], ve = 4e3, ye = 1, be = [
	502,
	503,
	504
], xe = class e {
	ended;
	heardAtMs = performance.now();
	#e;
	#t;
	#n;
	#r = () => {};
	constructor(e, t, n) {
		this.#e = e, this.#t = t, this.#n = n, this.ended = new Promise((e) => {
			this.#r = e;
		}), e.binaryType = "arraybuffer", e.onopen = () => e.send(t.opening()), e.onerror = () => {}, e.onmessage = ({ data: e }) => this.#i(e), e.onclose = ({ code: e, reason: t }) => this.#r(we(e, t));
	}
	static async open(t, r, i, a) {
		let o;
		try {
			o = await Ce(t, i);
		} catch (e) {
			let r = e instanceof n ? e : m(t, e);
			return {
				error: r,
				isLost: s(r) || r.code === "unavailable",
				isDone: !1
			};
		}
		let c = x(), l = new i.WebSocket(u(t, o), ee), d = !1, f = new e(l, r, (e) => {
			d ||= e.type === "ready", e.type === "ready" ? c.resolve("ready") : a(e);
		}), p = setTimeout(() => f.abandon(`no answer within ${i.openTimeoutMs} ms`), i.openTimeoutMs), h = await Promise.race([c.promise, f.ended]);
		if (clearTimeout(p), h === "ready") return f;
		let te = !h.error.reason && h.error.code === "unavailable" && !d;
		return r.beginAgain(h.error) ? {
			...h,
			isLost: !0
		} : te ? await Te(t, i, h) : h;
	}
	get bufferedBytes() {
		return this.#e.bufferedAmount;
	}
	get isOpen() {
		return this.#e.readyState === ye;
	}
	send(e) {
		this.#e.send(e);
	}
	abandon(e) {
		this.fail(r("unavailable", "connection", e, "one that lasts until the stream is closed"), !0);
	}
	fail(e, t) {
		this.#r({
			error: e,
			isLost: t,
			isDone: !1
		}), this.#e.onmessage = null, this.#e.close(ve);
	}
	#i(e) {
		this.heardAtMs = performance.now();
		try {
			let t = this.#t.receive(e, this.heardAtMs);
			if (t?.type === "error") {
				let e = t.error.code === "idle_timeout" && this.#t.outbox.hasUnsent;
				this.#r({
					error: t.error,
					isLost: e || s(t.error),
					isDone: !1
				});
			} else t && this.#n(t);
		} catch (e) {
			this.fail(e instanceof n ? e : r("internal", "stream", String(e)), !1);
		}
	}
};
async function Se(e, t, n, r, i, a, o = () => !0) {
	let s = performance.now() + e;
	for (let e of pe(r.firstDelayMs, r.longestDelayMs)) {
		if (a) {
			let t = Math.max(e, a.error.retryAfterMs ?? 0);
			if (performance.now() + t > s || !o()) break;
			await new Promise((e) => setTimeout(e, t));
		}
		let c = await xe.open(t, n, r, i);
		if (c instanceof xe) return c;
		if (!c.isLost) throw c.error;
		a = c;
	}
	throw a?.error ?? m(t, "no time to try");
}
async function Ce(e, { token: t, key: n }) {
	return t === void 0 ? n ? p(e, n) : "" : typeof t == "string" ? t : t();
}
function we(e, t) {
	let n = o(e, t);
	return {
		error: n,
		isLost: e === ge && n.code === "unavailable" || _e.includes(e) || s(n),
		isDone: e === he
	};
}
async function Te(e, t, n) {
	try {
		for (let n of ["readyz", "v1/info"]) {
			let r = await fetch(d(e, n), {
				cache: "no-store",
				headers: f(t.key),
				signal: AbortSignal.timeout(t.openTimeoutMs)
			});
			if (!r.ok && !(n === "v1/info" && t.token)) {
				let e = await a(r);
				return {
					error: e,
					isLost: s(e) || be.includes(r.status),
					isDone: !1
				};
			}
		}
		let i = r("unavailable", "handshake", "one that was refused, by a service that answers requests", "one that is let through");
		return {
			...n,
			error: i,
			isLost: !0
		};
	} catch (t) {
		return {
			...n,
			error: m(e, t),
			isLost: !0
		};
	}
}
// client/src/settings.ts
var Ee = [
	"encode",
	"decode",
	"echo"
], S = {
	s16le: 2,
	f32le: 4
}, De = 2, C = 12.5;
function Oe(e) {
	let { mode: t = "encode", sampleFormat: n = "s16le", sampleRateHz: i = 24e3, channels: a = 1, levels: o, numerics: s } = e;
	if (!Ee.includes(t)) throw r("setting", "mode", String(t), Ee.join(" | "));
	if (!(n in S)) throw r("setting", "sampleFormat", String(n), Object.keys(S).join(" | "));
	return {
		mode: t,
		sampleFormat: n,
		sampleRateHz: i,
		channels: a,
		hello: {
			mode: t,
			format: n,
			sample_rate: i,
			...t === "decode" ? {} : { channels: a },
			...e.echoCodes ? { echo_codes: "on" } : {},
			...e.freePace ? { pace: "free" } : {},
			...o === void 0 ? {} : { levels: o },
			...s === void 0 ? {} : { numerics: s }
		}
	};
}
function ke({ mode: e, sampleFormat: t, channels: n }, r) {
	return e === "decode" ? De * r : S[t] * n;
}
function w({ mode: e, sampleRateHz: t }) {
	return e === "decode" ? C : t;
}
function Ae(e) {
	let t = {
		resume: !0,
		giveUpMs: null,
		waitForPlaceMs: 0,
		firstDelayMs: 100,
		longestDelayMs: 5e3,
		openTimeoutMs: 1e4,
		closeTimeoutMs: 5e3,
		pingIntervalMs: 2e4,
		pingTimeoutMs: 2e4,
		maxUnsentBytes: 1 << 18,
		maxHeldBytes: 1 << 25,
		maxReceivedFrames: 256,
		WebSocket: globalThis.WebSocket,
		...e
	};
	if (typeof t.WebSocket != "function") throw r("unavailable", "WebSocket", "none on this platform", "Node 22 or newer, or the option WebSocket");
	return t;
}
// client/src/conversation.ts
var je = 8, Me = 65536, Ne = 10, Pe = 1e3, Fe = class {
	#e;
	#t;
	#n;
	#r;
	#i;
	#a = null;
	#o = null;
	#s = !1;
	#c = !1;
	#l = [];
	#u = new me();
	#d = new me();
	#f = [];
	#p = [];
	#m = null;
	#h = null;
	#g = 0;
	#_ = null;
	room = new me();
	constructor(e, t, n, r, i) {
		this.#e = e, this.#n = t, this.#t = n, this.#r = r ? new de(w(t.asked)) : null, this.#i = i;
	}
	async open() {
		this.#b(await this.#y(this.#t.waitForPlaceMs, null));
	}
	get waitingFrames() {
		return this.#l.length;
	}
	flush() {
		return this.#v("flush", this.#f);
	}
	reset() {
		return this.#v("reset", this.#p);
	}
	fail(e) {
		!this.#o && !this.#s && (this.#o = e instanceof n ? e : r("input", "source", String(e), "input to send"), this.#a?.fail(this.#o, !1), this.#E());
	}
	async next() {
		for (;;) {
			let e = this.#l.shift();
			if (e) return this.pump(), e;
			if (this.#o) throw this.#o;
			if (this.#c || this.#s) return null;
			await this.#u.wait();
		}
	}
	async #v(e, t) {
		this.requireOpen();
		let n = x();
		return t.push(n), this.#n.outbox.appendControl(e), this.pump(), n.promise;
	}
	async close() {
		!this.#s && !this.#c && this.#n.outbox.appendControl("close"), this.#s = !0, this.#l = [], this.pump();
		let e = setTimeout(() => this.#a?.abandon("closing took too long"), this.#t.closeTimeoutMs), t = setTimeout(() => this.#E(), this.#t.closeTimeoutMs);
		for (; !this.#c;) await this.#d.wait();
		clearTimeout(e), clearTimeout(t);
	}
	requireOpen() {
		if (this.#o) throw this.#o;
		if (this.#s || this.#c) throw r("session_closed", "stream", "closed", "an open stream");
	}
	get messageBytes() {
		let { outbox: e, asked: t, ready: n } = this.#n, r = this.#r ? 1 : je, i = Math.max(1, Math.floor(r * w(t) / C)), a = n.maxMessageBytes - n.maxMessageBytes % e.unitBytes;
		return Math.max(e.unitBytes, Math.min(i * e.unitBytes, a));
	}
	#y(e, t) {
		return Se(e, this.#e, this.#n, this.#t, (e) => this.#x(e), t, () => !this.#c && !this.#s);
	}
	async #b(e) {
		this.#h = setInterval(() => this.#T(), Pe), this.#g = performance.now();
		try {
			for (let t = e;;) {
				this.#a = t, this.#_ = null, this.pump();
				let e = await t.ended;
				if (this.#a = null, this.#c || this.#s && (e.isDone || e.isLost)) return;
				if (!e.isLost || this.#n.token === null) throw e.error;
				this.#i({
					kind: "lost",
					text: e.error.message
				}), t = await this.#y(this.#t.giveUpMs ?? this.#n.ready.resumeGraceMs, e), this.#i({
					kind: "resumed",
					text: this.#n.ready.resampler ? `resampler ${this.#n.ready.resampler}` : ""
				});
			}
		} catch (e) {
			this.#o ??= e instanceof n ? e : r("internal", "stream", String(e));
		} finally {
			this.#E();
		}
	}
	#x(e) {
		switch (e.type) {
			case "frame":
				this.#S(e);
				break;
			case "flushed":
				this.#S(e), this.#f.shift()?.resolve(e);
				break;
			case "reset_done":
				this.#p.shift()?.resolve();
				break;
			case "warning":
				this.#i({
					kind: "warning",
					text: `${e.code}: ${e.message}`
				});
				break;
			case "goaway": this.#i({
				kind: "goaway",
				text: `the service goes down in ${e.timeLeftMs} ms`
			});
		}
		this.pump();
	}
	#S(e) {
		this.#s || (this.#l.push(e), this.#u.notify());
	}
	pump() {
		let e = this.#a;
		if (!e?.isOpen) return;
		this.#n.ackIsDue && e.send(this.#n.ack());
		let { outbox: t } = this.#n;
		for (let n = t.peek(this.messageBytes); n; n = t.peek(this.messageBytes)) {
			if (e.bufferedBytes > Me) {
				this.#w(Ne);
				return;
			}
			if (n.kind === "chunk") {
				let e = this.#r?.delayMs(n.epoch, (n.byte + n.data.length) / t.unitBytes, performance.now()) ?? 0;
				if (e > 0) {
					this.#w(e);
					return;
				}
				if (!this.#C) return;
			}
			e.send(this.#n.encoded(n)), this.#n.sent(n, performance.now()), this.room.notify();
		}
	}
	get #C() {
		let { inFlightFrames: e } = this.#n.meter;
		return e <= this.#n.ready.creditFrames && e + this.#l.length < this.#t.maxReceivedFrames;
	}
	#w(e) {
		this.#m ??= setTimeout(() => {
			this.#m = null, this.pump();
		}, e);
	}
	#T() {
		let e = performance.now(), t = e - this.#g > 5 * Pe;
		this.#g = e;
		let n = this.#a;
		n?.isOpen && (this.#_ === null || n.heardAtMs > this.#_ || t ? (this.#_ = null, e - n.heardAtMs > this.#t.pingIntervalMs && (n.send("{\"type\":\"ping\"}"), this.#_ = e)) : e - this.#_ > this.#t.pingTimeoutMs && n.abandon(`nothing heard for ${this.#t.pingTimeoutMs} ms after a ping`));
	}
	#E() {
		this.#c = !0, clearInterval(this.#h ?? void 0), clearTimeout(this.#m ?? void 0);
		let e = this.#o ?? r("session_closed", "stream", "closed before this was answered", "an open stream");
		for (let { promise: t, reject: n } of [...this.#f.splice(0), ...this.#p.splice(0)]) t.catch(() => {}), n(e);
		this.#u.notify(), this.room.notify(), this.#d.notify();
	}
};
// client/src/payload.ts
function Ie(e, t, n, i) {
	if (e instanceof Uint8Array) return new Uint8Array(e);
	if (t.mode === "decode") return Re(e, n, i);
	if (e instanceof Uint16Array) throw r("input_type", "pcm", "Uint16Array", "Int16Array or Float32Array");
	if (e.length % t.channels) throw r("input_shape", "pcm", `${e.length} samples`, `a multiple of ${t.channels}, one of each channel`);
	if (e instanceof Float32Array && !e.every(Number.isFinite)) throw r("non_finite_input", "pcm", "NaN or infinity", "finite samples");
	return t.sampleFormat === "s16le" ? E(e instanceof Int16Array ? e : T(e)) : E(e instanceof Float32Array ? e : Le(e));
}
function T(e) {
	return Int16Array.from(e, (e) => {
		let t = Math.max(-1, Math.min(1, e)) * 32768, n = Math.round(t), r = n - t === .5 && n % 2 != 0 ? n - 1 : n;
		return Math.min(32767, r);
	});
}
function Le(e) {
	return Float32Array.from(e, (e) => e / 32768);
}
function Re(e, t, n) {
	if (!(e instanceof Uint16Array)) throw r("input_type", "codes", e.constructor.name, "Uint16Array");
	if (e.length % t) throw r("input_shape", "codes", `${e.length} numbers`, `a multiple of ${t}, one of each level`);
	let i = e.findIndex((e) => e >= n);
	if (i >= 0) throw r("code_range", `codes[level ${i % t}, frame ${Math.floor(i / t)}]`, String(e[i]), `0 .. ${n - 1}`);
	return E(e);
}
function E(e) {
	return new Uint8Array(new Uint8Array(e.buffer, e.byteOffset, e.byteLength));
}
// client/src/outbox.ts
var ze = class {
	unitBytes;
	unsentBytes = 0;
	heldBytes = 0;
	#e;
	#t;
	#n = [];
	#r = 0;
	#i = {
		epoch: 0,
		byte: 0
	};
	#a = {
		epoch: 0,
		byte: 0
	};
	#o = 0;
	constructor(e, { keeps: t, maxHeldBytes: n }) {
		this.unitBytes = e, this.#e = t, this.#t = n;
	}
	get hasUnsent() {
		return this.#r < this.#n.length;
	}
	get isWhole() {
		return this.#a.epoch === 0 && this.#a.byte === 0;
	}
	append(e) {
		e.length > 0 && (this.#n.push({
			kind: "chunk",
			...this.#i,
			data: e
		}), this.#i.byte += e.length, this.unsentBytes += e.length);
	}
	appendControl(e) {
		this.#o += +(e === "flush"), this.#n.push({
			kind: e,
			...this.#i,
			ordinal: e === "flush" ? this.#o : 0
		}), e === "reset" && (this.#i = {
			epoch: this.#i.epoch + 1,
			byte: 0
		}, this.#o = 0);
	}
	peek(e) {
		let t = this.#n[this.#r];
		return t?.kind === "chunk" && t.data.length > e && this.#c(this.#r, e), this.#n[this.#r];
	}
	advance() {
		let e = this.#n[this.#r];
		this.#r += 1, e?.kind === "chunk" && (this.unsentBytes -= e.data.length, this.heldBytes += e.data.length), this.#e ? this.heldBytes > this.#t && this.#l(1) : this.#l(this.#r);
	}
	release(e, t) {
		let n = {
			epoch: e,
			byte: t * this.unitBytes
		};
		if (D(n, this.#a) <= 0) return;
		let r = 0;
		for (let e = this.#n[r]; e && r < this.#r && Ve(e, n); e = this.#n[r]) r += 1;
		let i = this.#n[r];
		r < this.#r && i?.kind === "chunk" && D(i, n) < 0 && (this.#c(r, n.byte - i.byte), this.#r += 1, r += 1), this.#l(r);
	}
	rewind(e, t, n) {
		let i = {
			epoch: e,
			byte: t * this.unitBytes
		};
		if (D(i, this.#i) > 0) throw r("internal", "resume", `a position behind the input, ${t}`, "at most its end");
		if (D(i, this.#a) < 0) throw r("unavailable", "resume", `input from ${t} of epoch ${e} asked for again, which is forgotten`, "more room (maxHeldBytes)");
		this.#r = this.#s(i, n);
		let a = (e) => e.reduce((e, t) => e + (t.kind === "chunk" ? t.data.length : 0), 0);
		this.heldBytes = a(this.#n.slice(0, this.#r)), this.unsentBytes = a(this.#n.slice(this.#r));
	}
	#s(e, t) {
		for (let n = 0; n < this.#n.length; n += 1) {
			let r = this.#n[n];
			if (r.kind === "chunk") {
				if (D(Be(r), e) > 0) {
					let t = D(r, e) < 0 ? e.byte - r.byte : 0;
					return t > 0 && this.#c(n, t), n + +(t > 0);
				}
			} else if (!(r.epoch < e.epoch || r.kind === "flush" && r.ordinal <= t)) return n;
		}
		return this.#n.length;
	}
	#c(e, t) {
		let n = this.#n[e];
		if (n?.kind === "chunk") {
			let r = {
				...n,
				data: n.data.subarray(0, t)
			}, i = {
				...n,
				byte: n.byte + t,
				data: n.data.subarray(t)
			};
			this.#n.splice(e, 1, r, i);
		}
	}
	#l(e) {
		for (let t of this.#n.splice(0, e)) t.kind === "chunk" ? (this.heldBytes -= t.data.length, this.#a = Be(t)) : t.kind === "reset" && (this.#a = {
			epoch: t.epoch + 1,
			byte: 0
		});
		this.#r -= e;
	}
};
function D(e, t) {
	return e.epoch - t.epoch || e.byte - t.byte;
}
function Be(e) {
	return {
		epoch: e.epoch,
		byte: e.byte + e.data.length
	};
}
function Ve(e, t) {
	return e.kind === "chunk" ? D(Be(e), t) <= 0 : D(e, t) < 0;
}
// client/src/protocol.ts
var He = 8, Ue = /* @__PURE__ */ new Set([
	"resume_refused",
	"resume_lost",
	"snapshot"
]), We = class {
	asked;
	token = null;
	epoch = 0;
	resumes = 0;
	repeatedFrames = 0;
	#e;
	#t;
	#n = null;
	#r = null;
	#i = null;
	#a = -1;
	#o = -1;
	#s = 0;
	constructor(e, { resume: t, maxHeldBytes: n }) {
		this.asked = e, this.#e = t, this.#t = n;
	}
	get ready() {
		return Ge(this.#n);
	}
	get outbox() {
		return Ge(this.#r);
	}
	get meter() {
		return Ge(this.#i);
	}
	opening() {
		return JSON.stringify(this.token === null ? {
			type: "hello",
			...this.asked.hello
		} : {
			type: "resume",
			token: this.token,
			last_sequence: this.#a,
			epoch: this.epoch
		});
	}
	beginAgain(e) {
		return !Ue.has(e.code) || this.token === null || this.epoch > 0 || !this.outbox.isWhole ? !1 : (this.token = null, !0);
	}
	receive(e, t) {
		if (typeof e != "string") return this.#l(oe(e, this.asked.sampleFormat), t);
		let n = ae(e);
		switch (n?.type) {
			case "ready": return this.#c(n), n;
			case "checkpoint": return this.outbox.release(n.epoch, n.position), n;
			case "goaway": return this.token = this.#e && n.resumeToken || this.token, n;
			case "flushed": return this.#u(n) ? n : null;
			case "reset_done": return this.#d(n.epoch) ? n : null;
			default: return n;
		}
	}
	encoded(e) {
		return e.kind === "chunk" ? e.data : JSON.stringify({ type: e.kind });
	}
	sent(e, t) {
		e.kind === "flush" ? this.meter.flushSent(t) : e.kind === "chunk" && e.epoch === this.epoch && this.meter.sent(e.data.length / this.outbox.unitBytes, t), this.outbox.advance();
	}
	get ackIsDue() {
		return this.token !== null && this.#a - this.#o >= He;
	}
	ack() {
		return this.#o = this.#a, JSON.stringify({
			type: "ack",
			sequence: this.#a,
			epoch: this.epoch
		});
	}
	#c(e) {
		if (this.#n && O(e) !== O(this.#n)) throw r("unavailable", "service", `another codec, ${O(e)}`, `${O(this.#n)}, as at the start`);
		this.#n = e, this.token = this.#e ? e.resumeToken : null, !this.#r || !this.#i ? (this.#r = new ze(ke(this.asked, e.levels), {
			keeps: this.token !== null,
			maxHeldBytes: this.#t
		}), this.#i = new fe(w(this.asked) / C)) : (this.resumes += 1, this.#o = this.#a, this.#r.rewind(e.epoch, e.position, e.flushes), e.epoch === this.epoch && this.#i.restart(e.position));
	}
	#l(e, t) {
		let { frameSamples: n } = this.ready;
		if (e.sequence <= this.#a) return this.repeatedFrames += 1, this.meter.answered(Math.floor(e.position / n), t), null;
		if (e.sequence !== this.#a + 1) throw r("internal", "service", `answer ${e.sequence}`, `${this.#a + 1}, the next`);
		return this.#a = e.sequence, {
			...e,
			latencyMs: this.meter.answered(Math.floor(e.position / n), t)
		};
	}
	#u(e) {
		let t = e.flushes > this.#s;
		return this.#s = Math.max(this.#s, e.flushes), t;
	}
	#d(e) {
		return e <= this.epoch ? !1 : (this.epoch = e, this.#a = this.#o = -1, this.#s = 0, this.outbox.release(e, 0), this.meter.restart(), !0);
	}
};
function Ge(e) {
	if (e === null) throw r("unavailable", "stream", "no settings agreed yet", "an open stream");
	return e;
}
function O({ model: e, levels: t }) {
	return `${e.sha256.slice(0, 12)}, ${e.numerics}, ${t} levels`;
}
// client/src/stream.ts
var Ke = class e {
	#e;
	#t;
	#n;
	constructor(e, t, { paced: n = !1, notify: r = () => {}, ...i }) {
		this.#e = Ae(i), this.#t = new We(Oe(t), this.#e), this.#n = new Fe(e, this.#t, this.#e, n, r);
	}
	static async connect(t, n = {}, r = {}) {
		let i = new e(t, n, r);
		return await i.#n.open(), i;
	}
	get ready() {
		return this.#t.ready;
	}
	get stats() {
		let { meter: e, outbox: t, asked: n } = this.#t, r = (t) => e.percentileMs(t);
		return {
			sentFrames: e.sentFrames,
			answeredFrames: e.answeredFrames,
			lagMs: 1e3 * Math.floor(e.inFlightFrames) / C,
			unsentMs: 1e3 * t.unsentBytes / t.unitBytes / w(n),
			waitingFrames: this.#n.waitingFrames,
			latencyMs: {
				p50: r(50),
				p95: r(95),
				p99: r(99),
				max: r(100)
			},
			resumes: this.#t.resumes,
			repeatedFrames: this.#t.repeatedFrames
		};
	}
	async send(e) {
		this.#n.requireOpen();
		let { levels: t, codebookEntries: n } = this.ready, { outbox: r } = this.#t, i = Ie(e, this.#t.asked, t, n);
		for (let e = 0; e < i.length; e += this.#n.messageBytes) {
			for (; r.unsentBytes >= this.#e.maxUnsentBytes;) this.#n.requireOpen(), await this.#n.room.wait();
			this.#n.requireOpen(), r.append(i.subarray(e, e + this.#n.messageBytes)), this.#n.pump();
		}
	}
	async flush() {
		return this.#n.flush();
	}
	async reset() {
		return this.#n.reset();
	}
	async receive() {
		for (;;) {
			let e = await this.#n.next();
			if (e?.type !== "flushed") return e;
		}
	}
	async *[Symbol.asyncIterator]() {
		for (let e = await this.receive(); e; e = await this.receive()) yield e;
	}
	async *run(e) {
		let t = this.#r(e);
		for (t.catch(() => {});;) {
			let e = await this.#n.next();
			if (e === null) throw await t, r("session_closed", "stream", "closed before this was answered", "an open stream");
			if (e.type === "flushed") return e;
			yield e;
		}
	}
	close() {
		return this.#n.close();
	}
	async [Symbol.asyncDispose]() {
		await this.close();
	}
	async #r(e) {
		try {
			for await (let t of e) await this.send(t);
			await this.flush();
		} catch (e) {
			throw this.#n.fail(e), e;
		}
	}
}, qe = "NUMPY", Je = "MIMI", k = 8, Ye = 64, Xe = 32767;
function Ze(e, t) {
	if (t >= e.levels) return e;
	let n = new Uint16Array(e.frames * t);
	for (let r = 0; r < e.frames; r += 1) n.set(e.data.subarray(r * e.levels, r * e.levels + t), r * t);
	return {
		...e,
		levels: t,
		data: n
	};
}
function Qe({ levels: e, frames: t, data: n }) {
	let r = `{'descr': '${n.some((e) => e > Xe) ? "<u2" : "<i2"}', 'fortran_order': False, 'shape': (${e}, ${t}), }`, i = Math.ceil((10 + r.length + 1) / Ye) * Ye - 10, a = new Uint8Array(10 + i + 2 * n.length), o = new DataView(a.buffer);
	a.set(Uint8Array.from(`${qe}\x01\x00`, (e) => e.charCodeAt(0))), o.setUint16(8, i, !0), a.set(new TextEncoder().encode(`${r.padEnd(i - 1)}\n`), 10);
	for (let r = 0; r < e; r += 1) for (let a = 0; a < t; a += 1) o.setUint16(10 + i + 2 * (r * t + a), n[a * e + r] ?? 0, !0);
	return a;
}
function $e({ levels: e, data: t }) {
	let n = new Uint8Array(k + 2 * t.length), i = new DataView(n.buffer);
	return n.set(new TextEncoder().encode(Je)), i.setInt32(4, e, !0), t.forEach((e, t) => {
		if (e > Xe) throw r("codes_file", ".mimi", `a code of ${e}`, "codes of at most 32767");
		i.setUint16(k + 2 * t, e, !0);
	}), n;
}
function et(e, t = "codes") {
	let n = String.fromCharCode(...e.subarray(0, 6));
	return n === qe ? tt(e, t) : n.startsWith(Je) ? nt(e, t) : rt(e, t);
}
function tt(e, t) {
	let n = new DataView(e.buffer, e.byteOffset, e.byteLength), r = e[6] === 1, i = r ? 10 : 12;
	if (e.length < i) throw A(t, "a header that is cut off");
	let a = i + (r ? n.getUint16(8, !0) : n.getUint32(8, !0)), o = new TextDecoder("latin1").decode(e.subarray(i, a)), s = /'descr': *'<([iu])([248])'/.exec(o), c = /'shape': *\((\d+), *(\d+)\)/.exec(o);
	if (!s || !c || !/'fortran_order': *False/.test(o)) throw A(t, o.trim().slice(0, 80) || "no header");
	let [l, u, d] = [
		Number(c[1]),
		Number(c[2]),
		Number(s[2])
	];
	if (l < 1 || e.length !== a + l * u * d) throw A(t, `${e.length - a} bytes of ${l} x ${u} codes`);
	let f = new Uint16Array(l * u);
	for (let e = 0; e < l; e += 1) for (let r = 0; r < u; r += 1) {
		let i = a + d * (e * u + r), o = d === 2 ? n.getInt16(i, !0) : d === 4 ? n.getInt32(i, !0) : Number(n.getBigInt64(i, !0));
		f[r * l + e] = it(s[1] === "u" && d === 2 ? o & 65535 : o, t);
	}
	return {
		levels: l,
		frames: u,
		samples: null,
		data: f
	};
}
function nt(e, t) {
	let n = new DataView(e.buffer, e.byteOffset, e.byteLength), r = e.length < k ? 0 : n.getInt32(4, !0), i = (e.length - k) / 2;
	if (r < 1 || !Number.isInteger(i / r)) throw A(t, `${r} levels, ${e.length} bytes`);
	let a = Uint16Array.from({ length: i }, (e, r) => it(n.getInt16(k + 2 * r, !0), t));
	return {
		levels: r,
		frames: i / r,
		samples: null,
		data: a
	};
}
function rt(e, t) {
	let n;
	try {
		n = JSON.parse(new TextDecoder().decode(e));
	} catch {
		throw A(t, "neither of them");
	}
	let r = c(n) ? n.codes : null;
	if (!Array.isArray(r) || r.length === 0 || !r.every((e) => Array.isArray(e) && e.length === r[0].length)) throw A(t, "JSON without codes[level][frame]");
	let [i, a] = [r.length, r[0].length], o = Uint16Array.from({ length: i * a }, (e, n) => it(r[n % i][Math.floor(n / i)], t)), s = n.samples;
	return {
		levels: i,
		frames: a,
		samples: Number.isSafeInteger(s) ? s : null,
		data: o
	};
}
function it(e, t) {
	if (!Number.isInteger(e) || e < 0 || e > 65535) throw A(t, `the code ${JSON.stringify(e)}`);
	return e;
}
function A(e, t) {
	return r("codes_file", e, t, ".npy [levels, frames], .mimi, or JSON of the service");
}
// client/src/resampler.ts
var at = 48, ot = 9, j = class {
	lookaheadSamples;
	#e;
	#t;
	#n;
	#r;
	#i;
	#a = 0;
	#o = 0;
	constructor(e, t) {
		let n = lt(e, t);
		this.#e = t / n, this.#t = e / n;
		let r = Math.min(1, t / e) * .94, i = e === t ? 0 : Math.ceil(at / r);
		this.lookaheadSamples = i, this.#n = i === 0 ? [] : Array.from({ length: this.#e }, (e, t) => st(t / this.#e, i, r)), this.#r = new Float32Array(i === 0 ? 0 : i - 1), this.#i = 1 - i;
	}
	push(e) {
		if (this.lookaheadSamples === 0) return new Float32Array(e);
		this.#a += e.length;
		let t = new Float32Array(this.#r.length + e.length);
		return t.set(this.#r), t.set(e, this.#r.length), this.#r = t, this.#s(Math.max(0, Math.ceil((this.#a - this.lookaheadSamples) * this.#e / this.#t)));
	}
	flush() {
		if (this.lookaheadSamples === 0) return /* @__PURE__ */ new Float32Array();
		let e = this.#a, t = this.push(new Float32Array(this.lookaheadSamples + 1));
		return t.slice(0, Math.max(0, t.length - (this.#o - Math.ceil(e * this.#e / this.#t))));
	}
	#s(e) {
		let t = new Float32Array(Math.max(0, e - this.#o)), n = this.lookaheadSamples;
		for (let e = 0; e < t.length; e += 1) {
			let r = (this.#o + e) * this.#t, i = this.#n[r % this.#e], a = Math.floor(r / this.#e) - n + 1 - this.#i, o = 0;
			for (let e = 0; e < i.length; e += 1) o += this.#r[a + e] * i[e];
			t[e] = o;
		}
		this.#o += t.length;
		let r = Math.floor(this.#o * this.#t / this.#e) - n + 1;
		return this.#r = this.#r.slice(Math.max(0, r - this.#i)), this.#i = Math.max(r, this.#i), t;
	}
};
function st(e, t, n) {
	let r = Float64Array.from({ length: 2 * t }, (r, i) => {
		let a = i - t + 1 - e, o = Math.PI * n * a;
		return (o === 0 ? 1 : Math.sin(o) / o) * ct(ot * Math.sqrt(Math.max(0, 1 - (a / t) ** 2)));
	}), i = r.reduce((e, t) => e + t, 0);
	return Float32Array.from(r, (e) => e / i);
}
function ct(e) {
	let [t, n] = [1, 1];
	for (let r = 1; n > 1e-12 * t; r += 1) n *= (e / (2 * r)) ** 2, t += n;
	return t;
}
function lt(e, t) {
	return t === 0 ? e : lt(t, e % t);
}
// client/src/wav.ts
var ut = 44, dt = 1, ft = 65534;
function pt(e, t = 24e3) {
	let n = e instanceof Int16Array ? e : T(e), r = new Uint8Array(ut + 2 * n.length), i = new DataView(r.buffer), a = (e, t) => r.set(new TextEncoder().encode(t), e);
	return a(0, "RIFF"), i.setUint32(4, r.length - 8, !0), a(8, "WAVEfmt "), i.setUint32(16, 16, !0), i.setUint16(20, dt, !0), i.setUint16(22, 1, !0), i.setUint32(24, t, !0), i.setUint32(28, 2 * t, !0), i.setUint16(32, 2, !0), i.setUint16(34, 16, !0), a(36, "data"), i.setUint32(40, 2 * n.length, !0), r.set(new Uint8Array(n.buffer, n.byteOffset, n.byteLength), ut), r;
}
function mt(e) {
	let t = new DataView(e.buffer, e.byteOffset, e.byteLength), n = (t) => String.fromCharCode(...e.subarray(t, t + 4));
	if (e.length < ut || n(0) !== "RIFF" || n(8) !== "WAVE") return null;
	let r = null;
	for (let i = 12; i + 8 <= e.length;) {
		let [a, o, s] = [
			n(i),
			i + 8,
			t.getUint32(i + 4, !0)
		];
		if (a === "fmt " && s >= 16 && o + 16 <= e.length && (r = [dt, ft].includes(t.getUint16(o, !0)) && t.getUint16(o + 14, !0) === 16 ? {
			sampleRateHz: t.getUint32(o + 4, !0),
			channels: t.getUint16(o + 2, !0)
		} : null), a === "data" && r && r.channels > 0 && r.sampleRateHz > 0) {
			let t = Math.min(o + s, e.length), n = Math.floor((t - o) / (2 * r.channels)) * r.channels;
			return {
				...r,
				samples: new Int16Array(e.slice(o, o + 2 * n).buffer)
			};
		}
		i = o + s + s % 2;
	}
	return null;
}
// studio/src/take.ts
var M = 24e3, N = 1920, P = N / M, ht = 7500, gt = N / 8, F = class e {
	#e = new Int16Array(10 * M);
	length = 0;
	static of(t) {
		let n = new e();
		return n.push(t), n;
	}
	push(e) {
		let t = this.length + e.length;
		if (t > this.#e.length) {
			let e = new Int16Array(Math.max(t, 2 * this.#e.length));
			e.set(this.#e.subarray(0, this.length)), this.#e = e;
		}
		this.#e.set(e, this.length), this.length = t;
	}
	get frames() {
		return this.length / N;
	}
	view(e = 0, t = this.length) {
		return this.#e.subarray(Math.min(e, this.length), Math.min(t, this.length));
	}
	frame(e) {
		let t = new Float32Array(N);
		return this.view(e * N, (e + 1) * N).forEach((e, n) => t[n] = e / 32768), t;
	}
	peak(e) {
		let [t, n] = [0, 0];
		for (let r of this.view(e * gt, (e + 1) * gt)) t = r < t ? r : t, n = r > n ? r : n;
		return [t / 32768, n / 32768];
	}
}, _t = class e {
	name;
	levels;
	input;
	output = new F();
	latenciesMs = [];
	frames = 0;
	#e;
	constructor(e, t, { withInput: n = !0 } = {}) {
		this.name = e, this.levels = t, this.input = n ? new F() : null, this.#e = new Uint16Array(ht * t);
	}
	static ofCodes(t, { levels: n, frames: r, data: i }) {
		let a = new e(t, n, { withInput: !1 });
		for (let e = 0; e < Math.min(r, ht); e += 1) a.pushCodes(i.subarray(e * n, (e + 1) * n), null);
		return a;
	}
	get isFull() {
		return this.frames >= 7500 || (this.input?.frames ?? 0) >= 7500;
	}
	get samples() {
		return Math.min(this.input?.length ?? Infinity, this.frames * N);
	}
	pushCodes(e, t) {
		this.frames < 7500 && (this.#e.set(e, this.frames * this.levels), this.latenciesMs.push(t), this.frames += 1);
	}
	frame(e) {
		return this.#e.subarray(e * this.levels, (e + 1) * this.levels);
	}
	codes(e, t = 0) {
		let n = this.#e.slice(t * this.levels, this.frames * this.levels);
		return Ze({
			levels: this.levels,
			frames: this.frames - t,
			samples: null,
			data: n
		}, e);
	}
}, vt = {
	insecure: ["The browser withholds microphone and audio from this page.", "It lets only pages use them that come over HTTPS or from this computer (http://localhost). Put the service behind TLS, or reach it through a tunnel: ssh -L 8000:localhost:8000 HOST, then open http://localhost:8000."],
	old_browser: ["This browser is too old for this page.", "It needs WebSocket, AudioWorklet and getUserMedia."],
	microphone_denied: ["The browser was not allowed to use the microphone.", "Allow it in the settings of this page, mostly behind the icon beside the address, and speak again. A file works without."],
	microphone_missing: ["No microphone was found.", "Connect one and try again, or choose a file."],
	microphone_busy: ["The microphone cannot be opened.", "Another program may be using it. Close that and try again."],
	microphone_failed: ["The microphone cannot be used."],
	microphone_lost: ["The microphone went away.", "Connect it again. What came before is here."],
	file_unreadable: ["This file cannot be read, neither as sound nor as codes.", "WAV, FLAC, MP3 and Ogg mostly work as sound; .npy, .mimi and .json as codes."],
	file_too_big: ["The file is too big for this page.", "For long recordings, use the commands mimi encode and mimi decode."],
	no_output: ["The browser cannot start its audio.", "It needs a loudspeaker or headphones, even where only codes are wanted."],
	behind: ["Sound piles up: the network or the server takes it more slowly than it is made.", "Try a nearer server or a faster one. What was answered is here."],
	full: ["This page holds ten minutes.", "What was said so far is here. For longer recordings, use mimi stream."],
	unavailable: ["The server does not answer.", "It may be down or restarting. Try again in a moment."],
	unauthorized: ["The service asks for a key.", "Enter one; the operator has them."],
	token_expired: ["The leave to stream has expired.", "Try again."],
	page_failed: ["This page made a mistake.", "Reload it; please report what is said here."],
	capacity: ["Every place on the server is taken.", "Try again in a moment."],
	address_capacity: ["This address has all the streams that one may have.", "Close another page, or try again in a moment."],
	overloaded: ["The server has no time for one stream more.", "Try again in a moment."],
	draining: ["The server is going down or restarting.", "Try again in a moment."],
	forbidden_origin: ["The server does not take streams from pages of this address.", "The operator can allow it with --allowed-origins."],
	setting: ["The server does not take these settings."],
	codes_file: ["These codes cannot be read.", "They must be .npy [levels, frames], .mimi, or .json of the service."],
	code_range: ["These codes are of another model.", "One of them is outside the codebook of the model that runs here."],
	resume_lost: ["The stream cannot be had back: the connection was away for too long.", "What was answered is here."],
	resume_refused: ["The stream cannot be had back: the server does not have it any more.", "What was answered is here."],
	internal: ["The server failed.", "Please report it; its log says more."]
}, I = class extends Error {
	code;
	headline;
	advice;
	constructor(e, t = "", n = e) {
		super(t), this.code = e, this.headline = vt[e]?.[0] ?? n, this.advice = vt[e]?.[1] ?? "";
	}
};
function L(e) {
	return e instanceof I ? e : e instanceof n ? new I(e.code, e.message, e.reason || e.message) : new I("page_failed", String(e));
}
// studio/src/audio.ts
var yt = 5e3, bt = .1, xt = 10, St = 160, R = null, Ct = St;
function wt() {
	if (!globalThis.isSecureContext) throw new I("insecure", `This page came from ${location.origin}.`);
	if (!globalThis.AudioWorkletNode || !globalThis.WebSocket) throw new I("old_browser");
}
async function z() {
	if (wt(), !R) {
		let e = new AudioContext({ latencyHint: "interactive" });
		try {
			for (let t of ["capture", "player"]) await e.audioWorklet.addModule(new URL(`web/${t}-worklet.js`, document.baseURI));
		} catch (t) {
			throw e.close(), new I("unavailable", `Code for the audio thread: ${t}`);
		}
		R = e;
	}
	let e = new Promise((e) => setTimeout(e, yt, "late"));
	if (await Promise.race([R.resume(), e]) === "late") throw new I("no_output");
	return R;
}
function Tt() {
	R?.suspend();
}
var Et = class {
	node;
	report;
	#e;
	#t;
	#n;
	#r = () => {};
	constructor(e, t, n) {
		this.#e = e, this.#t = new j(M, e.sampleRate), this.#n = new j(M, e.sampleRate), this.report = {
			playedSamples: 0,
			waitingSamples: 0,
			targetSamples: 0,
			underruns: 0,
			skippedSamples: 0,
			atSamples: 0
		}, this.node = new AudioWorkletNode(e, "mimi-player", {
			numberOfInputs: 0,
			outputChannelCount: [1],
			processorOptions: {
				listen: t,
				targetMs: Ct
			}
		}), this.node.port.onmessage = ({ data: t }) => {
			t === "drained" ? this.#r() : (this.report = t, Ct = Math.max(St, 1e3 * this.report.targetSamples / e.sampleRate), n(t));
		}, this.node.connect(e.destination);
	}
	listen(e) {
		this.node.port.postMessage({ listen: e });
	}
	play(e, t) {
		this.#i(this.#t.push(e), this.#n.push(t));
	}
	async finish() {
		this.#i(this.#t.flush(), this.#n.flush()), this.node.port.postMessage("end"), this.#e.state === "running" && await new Promise((e) => {
			this.#r = () => setTimeout(e, 1e3 * bt), setTimeout(e, 1e3 * xt);
		}), this.node.disconnect();
	}
	stop() {
		this.node.port.postMessage("end"), this.node.disconnect();
	}
	#i(e, t) {
		this.node.port.postMessage({
			input: e,
			output: t
		});
	}
};
// studio/src/dom.ts
function B(e, t) {
	let n = document.getElementById(e);
	if (!(n instanceof t)) throw TypeError(`the page has no ${t.name} #${e}`);
	return n;
}
function V(e, t) {
	let n = B(e, HTMLElement);
	n.textContent !== t && (n.textContent = t);
}
function H(e, t) {
	B(e, HTMLElement).hidden = !t;
}
function Dt(e, t) {
	B(e, HTMLButtonElement).addEventListener("click", t);
}
function U(e) {
	return document.querySelector(`input[name=${e}]:checked`)?.value ?? "";
}
function W(e, t) {
	let n = document.querySelector(`input[name=${e}][value=${t}]`);
	n && (n.checked = !0);
}
// studio/src/drawing.ts
var Ot = [
	"#221d4b",
	"#3b3f8f",
	"#2f7d9a",
	"#54b28a",
	"#d3d264",
	"#fff3c9"
], kt = 256;
function At() {
	let e = getComputedStyle(document.documentElement), t = (t) => e.getPropertyValue(t).trim();
	return {
		ink: t("--ink"),
		faint: t("--faint"),
		lane: t("--lane"),
		input: t("--input"),
		output: t("--accent"),
		mark: t("--mark")
	};
}
var jt = Array.from({ length: kt }, (e, t) => {
	let n = t / 255 * (Ot.length - 1), r = Math.min(Math.floor(n), Ot.length - 2), i = (e, t) => parseInt(Ot[e].slice(1 + 2 * t, 3 + 2 * t), 16);
	return [
		0,
		1,
		2
	].map((e) => Math.round(i(r, e) + (i(r + 1, e) - i(r, e)) * (n - r)));
}), Mt = jt.map((e) => `rgb(${e.join(" ")})`);
function Nt(e, t) {
	return Mt[Math.min(255, Math.floor(e * kt / t))];
}
function G(e) {
	let { clientWidth: t, clientHeight: n } = e, r = devicePixelRatio;
	(e.width !== Math.round(t * r) || e.height !== Math.round(n * r)) && (e.width = Math.round(t * r), e.height = Math.round(n * r));
	let i = e.getContext("2d");
	return i.setTransform(r, 0, 0, r, 0, 0), i.clearRect(0, 0, t, n), i.font = "11px system-ui, sans-serif", i.textBaseline = "middle", {
		context: i,
		widthPx: t,
		heightPx: n
	};
}
// studio/src/hero.ts
var K = 9, Pt = 64;
function Ft(e) {
	let { context: t, widthPx: n, heightPx: r } = G(e), i = Math.ceil(n / K), a = Math.floor(r / K);
	for (let e = 0; e < i; e += 1) {
		let n = 2 * e / i - 1, r = .5 + .5 * Math.sin(e / 3.1) * Math.sin(e / 9.7 + 1);
		for (let i = 0; i < a; i += 1) {
			let o = i / a;
			t.globalAlpha = Math.max(0, (1 - n ** 4) * (1 - o * (1.25 - .6 * r))), t.fillStyle = Nt(It(i === 0 ? e >> 1 : e * 31 + i * 977), Pt), t.fillRect(e * K, i * K, 8, 8);
		}
	}
	t.globalAlpha = 1;
}
function It(e) {
	let t = Math.imul(e ^ 2654435769, 2246822507);
	return t = Math.imul(t ^ t >>> 13, 3266489909), (t ^ t >>> 16) & 63;
}
// studio/src/pairs.ts
function Lt() {
	return [...document.querySelectorAll("button[data-pair]")];
}
function Rt(e) {
	let t = e.dataset.pair ?? "";
	return t === "input" ? t : Number(t);
}
function zt(e) {
	for (let t of Lt()) t.addEventListener("click", () => e(Rt(t)));
}
function Bt(e) {
	H("pairs", e !== null);
	for (let t of Lt()) {
		let n = Rt(t);
		t.hidden = n === "input" ? !e?.input : n > (e?.levels ?? 0);
	}
}
function Vt(e) {
	for (let t of Lt()) t.setAttribute("aria-pressed", String(Rt(t) === e));
}
// studio/src/page.ts
var Ht = [
	"input.wav",
	"codec.wav",
	"npy",
	"mimi"
];
function Ut(e) {
	let t = B("file", HTMLInputElement), n = {
		speak: () => e.speak(),
		choose: () => t.click(),
		example: () => e.playExample()
	};
	for (let e of document.querySelectorAll("button[data-act]")) e.addEventListener("click", () => n[e.dataset.act ?? ""]?.());
	t.addEventListener("change", () => {
		let [n] = t.files ?? [];
		n && e.open(n), t.value = "";
	}), Dt("stop", () => e.stop()), Dt("play", () => e.playOrPause()), zt((t) => void e.hear(t)), Ht.forEach((t) => Dt(`save-${t.replace(".", "-")}`, () => e.save(t)));
	let r = B("levels", HTMLInputElement);
	r.addEventListener("input", () => e.setLevels(r.valueAsNumber));
	let i = B("seek", HTMLInputElement);
	i.addEventListener("input", () => e.seek(i.valueAsNumber));
	for (let t of document.querySelectorAll("input[name=listen]")) t.addEventListener("change", () => e.listen(U("listen")));
	for (let t of document.querySelectorAll("input[name=lanes]")) t.addEventListener("change", () => e.changeLanes());
	Wt((t) => e.open(t));
}
function Wt(e) {
	let t = (e) => document.body.classList.toggle("dropping", e);
	addEventListener("dragover", (e) => {
		e.preventDefault(), t(!0);
	}), addEventListener("dragleave", () => t(!1)), addEventListener("drop", (n) => {
		n.preventDefault(), t(!1);
		let [r] = n.dataTransfer?.files ?? [];
		r && e(r);
	});
}
// studio/src/service.ts
var Gt = 44, Kt = 144e5, qt = class {
	#e;
	#t = "";
	constructor(e) {
		this.#e = e;
	}
	use(e) {
		this.#t = e;
	}
	async facts() {
		return (await (await this.#r("v1/info")).json()).model;
	}
	stream(e, t) {
		let n = this.#t, r = n ? { token: () => p(this.#e, n) } : {};
		return Ke.connect(this.#n("v1/stream"), e, {
			maxUnsentBytes: Kt,
			...t,
			...r
		});
	}
	async decode(e, t) {
		let n = await this.#r(`v1/decode?levels=${e.levels}`, {
			method: "POST",
			headers: {
				"Content-Type": "application/octet-stream",
				Accept: "audio/wav"
			},
			body: e.data,
			signal: t
		});
		return new Int16Array((await n.arrayBuffer()).slice(Gt));
	}
	async example() {
		return (await this.#r("web/example.wav")).arrayBuffer();
	}
	#n(e) {
		return new URL(e, this.#e).href;
	}
	async #r(e, t = {}) {
		let r = String.fromCharCode(...new TextEncoder().encode(this.#t)), i = {
			...r ? { Authorization: `Bearer ${r}` } : {},
			...t.headers
		}, o;
		try {
			o = await fetch(this.#n(e), {
				cache: "no-store",
				...t,
				headers: i
			});
		} catch (r) {
			throw t.signal?.aborted ? r : new n("unavailable", {
				subject: this.#n(e),
				found: String(r),
				expected: "an answer"
			});
		}
		if (!o.ok) throw await a(o);
		return o;
	}
};
function Jt(e, t) {
	return t * Math.log2(e.codebook_entries) * e.frame_rate_hz;
}
function Yt(e, t) {
	return `${(Jt(e, t) / 1e3).toFixed(2)}\u00a0kbit/s`;
}
// studio/src/decoded.ts
var Xt = 120, Zt = 8, Qt = class {
	#e;
	#t;
	#n = /* @__PURE__ */ new Map();
	#r = null;
	constructor(e, t) {
		this.#e = e, this.#t = t;
	}
	keep(e, t) {
		this.#n.delete(e), this.#n.set(e, t);
		for (let e of [...this.#n.keys()].slice(0, Math.max(0, this.#n.size - Zt))) this.#n.delete(e);
	}
	async at(e) {
		this.#r?.abort();
		let t = this.#n.get(e);
		if (t) return t;
		let n = new AbortController();
		this.#r = n, await new Promise((e) => setTimeout(e, Xt));
		try {
			if (n.signal.aborted) return null;
			let t = F.of(await this.#e.decode(this.#t.codes(e), n.signal));
			return this.keep(e, t), t;
		} catch (e) {
			if (n.signal.aborted) return null;
			throw e;
		}
	}
}, $t = {
	starting: "Cancel",
	live: "Stop",
	finishing: "Stop now"
};
function en(e, t, n) {
	let r = e === "starting" || e === "live" || e === "finishing", i = e === "empty" || e === "take";
	document.body.dataset.state = e, H("welcome", n === null), H("stage", n !== null), H("stop", r), H("play", e === "take"), H("seek", e === "take"), H("listen-off", r), V("stop-words", $t[e] ?? "Stop");
	for (let e of document.querySelectorAll("button[data-act]")) e.disabled = !i;
	for (let t of document.querySelectorAll("#save button")) t.disabled = e !== "take" || t.id === "save-input-wav" && !n?.input;
	e === "starting" && nn(!1), e === "live" && (document.activeElement === document.body || document.activeElement?.matches(":disabled")) && B("stop", HTMLButtonElement).focus({ preventScroll: !0 }), tn(t, !1);
}
function tn(e, t) {
	B("status", HTMLElement).classList.toggle("away", t), V("status", e);
}
function nn(e) {
	V("play-words", e ? "Pause" : "Play"), B("play", HTMLButtonElement).classList.toggle("playing", e);
}
function q(e) {
	V("clock", `${e.toFixed(1)} s`);
}
function rn(e, t) {
	B("levels", HTMLInputElement).value = String(e), V("levels-value", String(e)), V("bit-rate", Yt(t, e)), V("output-label", `Codec, ${e} ${e === 1 ? "level" : "levels"}`);
}
function an(e) {
	B("levels", HTMLInputElement).max = String(e.levels);
	for (let t of document.querySelectorAll("input[name=listen][value=input]")) t.disabled = e.input === null;
}
function on(e) {
	let t = e.frames * P, n = B("seek", HTMLInputElement);
	n.max = t.toFixed(2), n.value = "0", q(t), B("play", HTMLButtonElement).focus({ preventScroll: !0 });
}
function sn() {
	let e = B("seek", HTMLInputElement);
	return e.valueAsNumber >= Number(e.max) - .05 ? 0 : e.valueAsNumber;
}
var cn = 480, J = 1024, ln = -90, un = 12e3, dn = Float32Array.from({ length: J }, (e, t) => .5 - .5 * Math.cos(2 * Math.PI * t / J)), fn = Array.from({ length: 73 }, (e, t) => _n(t / 72 * gn(un)) / un * (J / 2)), pn = class {
	#e;
	#t = [];
	constructor(e) {
		this.#e = e;
	}
	get end() {
		return Math.max(0, Math.floor((this.#e.length - J) / cn) + 1);
	}
	column(e) {
		return this.#t[e] ??= this.#n(e * cn);
	}
	#n(e) {
		let [t, n] = [new Float64Array(J), new Float64Array(J)];
		return this.#e.view(e, e + J).forEach((e, n) => t[n] = e / 32768 * dn[n]), mn(t, n), Uint8Array.from({ length: 72 }, (e, r) => {
			let [i, a] = [Math.floor(fn[r]), Math.max(Math.ceil(fn[r + 1]), Math.floor(fn[r]) + 1)], o = 0;
			for (let e = i; e < a; e += 1) o = Math.max(o, t[e] ** 2 + n[e] ** 2);
			let s = 10 * Math.log10(o + 1e-12) - 20 * Math.log10(J / 4);
			return Math.max(0, Math.min(255, 255 * (s - ln) / 70));
		});
	}
};
function mn(e, t) {
	let n = e.length;
	for (let r = 1, i = 0; r < n; r += 1) {
		let a = n >> 1;
		for (; i & a; a >>= 1) i ^= a;
		i ^= a, r < i && ([e[r], e[i]] = [e[i], e[r]], [t[r], t[i]] = [t[i], t[r]]);
	}
	for (let r = 2; r <= n; r *= 2) for (let i = 0; i < n; i += r) for (let n = 0; n < r / 2; n += 1) hn(e, t, i + n, i + n + r / 2, -2 * Math.PI * n / r);
}
function hn(e, t, n, r, i) {
	let [a, o] = [Math.cos(i), Math.sin(i)], [s, c] = [e[r], t[r]], [l, u] = [s * a - c * o, s * o + c * a];
	e[r] = e[n] - l, t[r] = t[n] - u, e[n] = e[n] + l, t[n] = t[n] + u;
}
function gn(e) {
	return 2595 * Math.log10(1 + e / 700);
}
function _n(e) {
	return 700 * (10 ** (e / 2595) - 1);
}
var vn = {
	wide: 7,
	narrow: 5,
	most: 24
}, yn = 560, bn = class {
	end = 0;
	#e = null;
	#t = 0;
	#n = !1;
	resize(e) {
		this.#t = e;
	}
	set isFitted(e) {
		this.#n = e;
	}
	get framePx() {
		let e = this.#t < yn ? vn.narrow : vn.wide, t = this.end > 0 ? Math.floor((this.#t - 40) / Math.ceil(this.end)) : 0;
		return this.#n ? Math.max(e, Math.min(vn.most, t)) : e;
	}
	get shownFrames() {
		return Math.max(1, Math.floor((this.#t - 40) / this.framePx));
	}
	get shownEnd() {
		return this.#e ?? Math.max(Math.ceil(this.end), this.shownFrames);
	}
	get shownFirst() {
		return this.shownEnd - this.shownFrames;
	}
	follow() {
		this.#e = null;
	}
	show(e) {
		let t = this.shownEnd, n = t - this.shownFrames;
		this.#e = e < n ? Math.max(e, 0) + this.shownFrames : Math.max(t, Math.floor(e) + 1);
	}
	x(e) {
		return 40 + (e - this.shownFirst) * this.framePx;
	}
	frameAt(e) {
		return Math.floor((e - 40) / this.framePx) + this.shownFirst;
	}
};
function Y(e, t = 2) {
	return `${(e * P).toFixed(t)} s`;
}
var xn = 1.6;
function Sn({ context: e, widthPx: t, heightPx: n }, r, i) {
	e.fillStyle = r.lane, e.fillRect(40, 0, Math.min(i.x(i.shownEnd), t) - 40, n);
}
function Cn(e, t, n, r, i) {
	let a = G(e), { context: o, heightPx: s } = a;
	Sn(a, t, n);
	let c = s / 2;
	if (o.fillStyle = t.faint, o.fillRect(40, c - .5, n.x(n.shownEnd) - 40, 1), !r) return;
	o.fillStyle = i;
	let l = n.framePx / 8, u = Math.max(0, n.shownFirst) * 8, d = Math.floor(Math.min(r.frames, n.shownEnd) * 8);
	for (let e = u; e < d; e += 1) {
		let [t, i] = r.peak(e), a = c - Math.min(1, i) * (c - 1);
		o.fillRect(n.x(e / 8), a - .5, l + .25, (i - t) * (c - 1) + 1);
	}
}
var wn = class {
	#e = document.createElement("canvas");
	draw(e, t, n, r) {
		let i = G(e);
		Sn(i, t, n);
		let a = Math.max(0, n.shownFirst * 4), o = Math.min(r?.end ?? 0, n.shownEnd * 4) - a;
		if (!r || o <= 0) return;
		let s = new ImageData(o, 72);
		for (let e = 0; e < o; e += 1) {
			let t = r.column(a + e);
			for (let n = 0; n < 72; n += 1) s.data.set(jt[t[n]], 4 * ((71 - n) * o + e)), s.data[4 * ((71 - n) * o + e) + 3] = 255;
		}
		this.#e.width = o, this.#e.height = 72, this.#e.getContext("2d")?.putImageData(s, 0, 0);
		let [c, l] = [n.x(a / 4), n.x((a + o) / 4)];
		i.context.drawImage(this.#e, c, 0, l - c, i.heightPx);
	}
};
function Tn(e, t, n, r) {
	let i = G(e), { context: a, heightPx: o } = i;
	Sn(i, t, n);
	let s = (e) => o - Math.min(1, e / (xn * 80)) * o;
	for (let e = Math.max(0, n.shownFirst); e < Math.min(r.length, n.shownEnd); e += 1) {
		let i = r[e];
		if (i != null) {
			let r = i > 80;
			a.fillStyle = r ? t.mark : t.output, a.fillRect(n.x(e), s(i), n.framePx - 1, o - s(i)), r && a.fillRect(n.x(e) - 1, o - 3, n.framePx + 1, 3);
		}
	}
	a.fillStyle = t.faint, a.fillRect(40, s(80), n.x(n.shownEnd) - 40, 1), a.textAlign = "right", a.fillText("80 ms", 34, s(80));
}
// studio/src/figures.ts
var En = 16;
function Dn(e, t, n, r, i) {
	let a = [...e.latenciesMs.slice(-125).filter((e) => e !== null)].sort((e, t) => e - t);
	if (V("median", a.length ? On(X(a, .5)) : "–"), V("jitter", a.length ? On(X(a, .95) - X(a, .05)) : "–"), V("late", String(e.latenciesMs.filter((e) => e !== null && e > 80).length)), V("rate", Yt(n, r)), V("ratio", `${Math.round(n.sample_rate_hz * En / Jt(n, r))} ×`), t) {
		let { waitingSamples: e, underruns: r } = t.player?.report ?? {
			waitingSamples: 0,
			underruns: 0
		}, o = t.player?.node.context.sampleRate ?? 1, s = 1e3 / n.frame_rate_hz + X(a, .5) + 1e3 * e / o;
		i && a.length && V("delay", `≈ ${On(s)}`), V("gaps", String(r)), V("resumes", String(t.stream?.stats.resumes ?? 0));
	}
}
function X(e, t) {
	return e[Math.min(e.length - 1, Math.floor(t * e.length))] ?? 0;
}
function On(e) {
	return `${e < 10 ? e.toFixed(1) : Math.round(e)}\u00a0ms`;
}
// studio/src/monitor.ts
var kn = 40, An = Math.round(.02 * M), jn = class {
	isMixed = !1;
	#e;
	#t;
	#n;
	#r;
	#i = null;
	#a = null;
	#o;
	#s = 0;
	#c = [];
	#l = !1;
	#u = !1;
	constructor(e, t, n, r, i) {
		this.#e = e, this.#o = t, this.#t = n, this.#n = r, this.#r = i;
	}
	get levels() {
		return this.#i?.levels ?? this.#o;
	}
	async open() {
		this.#i = await this.#d(0);
	}
	push(e) {
		for (let t of [this.#i, this.#a]) t?.stream.send(e.slice(0, t.levels)).catch(() => {});
	}
	async change(e) {
		if (this.#o = e, !(!this.#i || this.#a || this.#u || this.#l || this.#i.levels === e)) {
			this.#u = !0;
			try {
				let e = await this.#d(Math.max(0, this.#e.frames - kn));
				this.#l ? await e.stream.close() : (this.isMixed ||= this.#s > 0, this.#a = e);
			} catch {} finally {
				this.#u = !1;
			}
		}
	}
	async finish() {
		this.#l = !0;
		let e = this.#a;
		this.#a = null, await e?.stream.close(), await this.#i?.stream.flush().catch(() => {}), await this.#i?.stream.close(), await Promise.all(this.#c);
	}
	async #d(e) {
		let t = this.#o, n = await this.#t(t), r = {
			stream: n,
			levels: t,
			first: Math.min(e, this.#e.frames),
			early: /* @__PURE__ */ new Map()
		}, { data: i } = this.#e.codes(t, r.first);
		return n.send(i).catch(() => {}), this.#c.push(this.#f(r)), r;
	}
	async #f(e) {
		try {
			for await (let { position: t, pcm: n } of e.stream) n && (e.early.set(e.first + t / N, n), this.#p());
		} catch (t) {
			e === this.#i && !this.#l && (this.#i = null, this.#r(t));
		}
	}
	#p() {
		for (let e = this.#i?.early.get(this.#s); e; e = this.#i?.early.get(this.#s)) {
			let [t, n] = [this.#i, this.#a], r = n?.early.get(this.#s);
			n && r && (e = Nn(e, r), this.#i = n, this.#a = null, t.stream.close()), this.#n(this.#s, e), Mn(this.#i, this.#s), this.#a && Mn(this.#a, this.#s), this.#s += 1, n && r && n.levels !== this.#o && this.change(this.#o);
		}
	}
};
function Mn(e, t) {
	for (let n of e.early.keys()) n <= t && e.early.delete(n);
}
function Nn(e, t) {
	return t.map((t, n) => {
		let r = Math.min(1, n / An);
		return r * t + (1 - r) * e[n];
	});
}
// studio/src/live.ts
var Pn = 3e5, Fn = class {
	take;
	monitor;
	player = null;
	stream = null;
	#e;
	#t;
	#n;
	#r;
	#i = !1;
	#a = null;
	#o = null;
	constructor(e, t, n, r, i, a) {
		this.#e = e, this.#t = t, this.#n = a, this.#r = i, this.take = n, this.monitor = new jn(n, r, (t) => e.stream({
			mode: "decode",
			levels: t
		}, {}), (e, t) => this.#u(e, t), (e) => this.#f(e));
	}
	listen(e) {
		this.#r = e, this.player?.listen(e);
	}
	async run() {
		let e = await this.#e.stream({
			mode: "encode",
			levels: this.take.levels
		}, { notify: (e) => this.#n.notice(e) });
		this.stream = e;
		try {
			await this.monitor.open().catch((e) => this.#f(e));
			let t = await z();
			this.#i ? this.stop() : (this.player = new Et(t, this.#r, (e) => this.#d(e, t.sampleRate)), this.#t.start(t, (e) => this.#l(T(e)), (e) => {
				this.#n.finishing(), this.stop(e);
			})), await this.#c(e), await this.monitor.finish(), await this.player?.finish();
		} finally {
			await this.#t.stop(), this.player?.stop(), e.close(), this.monitor.finish();
		}
		if (this.#a) throw this.#a;
	}
	stop(e = null) {
		this.#a ??= e, this.#i && this.#o ? (this.player?.stop(), this.stream?.close()) : (this.#i = !0, this.stream && this.player ? this.#o = this.#s(this.stream) : this.stream?.close());
	}
	async #s(e) {
		await this.#t.stop();
		try {
			await e.flush();
		} catch {}
		await e.close();
	}
	async #c(e) {
		for await (let { codes: t, latencyMs: n } of e) t && (this.take.pushCodes(t, n), this.monitor.push(t), this.#n.changed());
	}
	#l(e) {
		let { stream: t, take: n } = this;
		!t || n.isFull ? this.#i || this.stop(new I("full")) : (n.input?.push(e), t.send(e).catch((e) => this.stop(L(e))), this.#n.input(e), t.stats.unsentMs > Pn && this.stop(new I("behind")));
	}
	#u(e, t) {
		this.take.output.push(T(t)), this.player?.play(this.take.input?.frame(e) ?? t, t), this.#n.changed();
	}
	#d(e, t) {
		this.#t.tick(e.atSamples, t);
	}
	#f(e) {
		this.#n.unheard(L(e));
	}
}, Z = -60, In = 1500, Ln = 100, Rn = 32767, zn = class {
	#e;
	#t;
	#n = 0;
	#r = 0;
	#i = 0;
	#a = 0;
	#o = {
		db: Z,
		atMs: 0
	};
	#s = -1500;
	constructor(e, t) {
		this.#e = e, this.#t = t, this.clear();
	}
	push(e, t) {
		for (let t of e) this.#n += t * t, this.#i = Math.max(this.#i, Math.abs(t));
		this.#r += e.length, t - this.#a >= Ln && this.#c(t);
	}
	clear() {
		this.#o = {
			db: Z,
			atMs: 0
		}, this.#l(Z, !1), this.#t.textContent = "silence";
	}
	#c(e) {
		let t = Bn(Math.sqrt(this.#n / Math.max(1, this.#r))), n = Bn(this.#i);
		(n >= this.#o.db || e - this.#o.atMs > In) && (this.#o = {
			db: n,
			atMs: e
		}), this.#s = this.#i >= Rn ? e : this.#s, this.#l(t, e - this.#s < In), this.#a = e, this.#n = this.#r = this.#i = 0;
	}
	#l(e, t) {
		let n = `${Hn(e)}, peak ${Hn(this.#o.db)}${t ? ", clipped" : ""}`, [r, i] = [".meter-bar", ".meter-peak"].map((e) => this.#e.querySelector(e));
		r && i && (r.style.transform = `scaleX(${Vn(e)})`, i.style.left = `${100 * Vn(this.#o.db)}%`), this.#e.classList.toggle("clipped", t), this.#e.setAttribute("aria-valuenow", String(Math.round(e))), this.#e.setAttribute("aria-valuetext", n), this.#t.textContent = n;
	}
};
function Bn(e) {
	return Math.max(Z, 20 * Math.log10(Math.max(e, 1e-9) / 32768));
}
function Vn(e) {
	return (e - Z) / 60;
}
function Hn(e) {
	return e <= Z ? "silence" : `${Math.round(e)} dB`;
}
// studio/src/refusal-box.ts
var Un = ["unauthorized", "token_expired"], Wn = class {
	#e = B("refusal", HTMLElement);
	#t = B("key-entry", HTMLFormElement);
	#n = B("key", HTMLInputElement);
	constructor(e) {
		this.#t.addEventListener("submit", (t) => {
			t.preventDefault(), e(this.#n.value.trim());
		});
	}
	get code() {
		return this.#e.dataset.code ?? "";
	}
	show(e) {
		this.#e.dataset.code = e?.code ?? "";
		let t = e ? [
			["strong", e.headline],
			["span", e.advice],
			["small", e.message]
		] : [];
		this.#e.replaceChildren(...t.filter(([, e]) => e).map(([e, t]) => {
			let [n, r] = [document.createElement("p"), document.createElement(e)];
			return r.textContent = t, n.append(r), n;
		}));
		let n = e !== null && Un.includes(e.code);
		n && this.#t.hidden && (this.#n.value = ""), this.#t.hidden = !n, n && this.#n.focus();
	}
}, Gn = {
	wav: "audio/wav",
	npy: "application/octet-stream",
	mimi: "application/octet-stream"
};
function Kn(e, t, n) {
	switch (t) {
		case "input.wav": return pt(e.input?.view() ?? /* @__PURE__ */ new Int16Array());
		case "codec.wav": return pt(e.output.view(0, e.samples));
		case "npy": return Qe(e.codes(n));
		case "mimi": return $e(e.codes(n));
	}
}
function qn(e, t, n) {
	let r = t.endsWith(".wav") ? `${e.name}-${t}` : `${e.name}-${n}.${t}`, i = Gn[t.split(".").at(-1)], a = document.createElement("a");
	a.href = URL.createObjectURL(new Blob([Kn(e, t, n)], { type: i })), a.download = r, a.click(), setTimeout(() => URL.revokeObjectURL(a.href), 1e4);
}
// studio/src/sources.ts
var Jn = .02, Yn = 256 * 2 ** 20, Xn = 1e3, Zn = 4e3, Qn = 192e3;
async function $n() {
	let e = await er(), t = null, n = () => {}, r = () => {}, i = null;
	return {
		name: "microphone",
		start(i, a, o) {
			let s = new j(i.sampleRate, M), c = Math.round(Jn * i.sampleRate);
			t = new AudioWorkletNode(i, "mimi-capture", { processorOptions: { chunkSamples: c } }), t.port.onmessage = ({ data: e }) => e === "stopped" ? n() : a(s.push(e)), r = () => a(s.flush());
			for (let t of e.getAudioTracks()) t.onended = () => o(new I("microphone_lost"));
			i.createMediaStreamSource(e).connect(t), t.connect(i.destination);
		},
		tick() {},
		stop() {
			return i ??= (async () => {
				await new Promise((e) => {
					n = e, setTimeout(e, t ? Xn : 0), t?.port.postMessage("stop");
				}), r(), t?.disconnect(), e.getTracks().forEach((e) => e.stop());
			})(), i;
		}
	};
}
async function er() {
	if (!navigator.mediaDevices?.getUserMedia) throw new I("old_browser");
	try {
		return await navigator.mediaDevices.getUserMedia({ audio: {
			channelCount: 1,
			noiseSuppression: !1,
			autoGainControl: !1,
			echoCancellation: !1
		} });
	} catch (e) {
		let { name: t, message: n } = e;
		throw new I({
			NotAllowedError: "microphone_denied",
			SecurityError: "microphone_denied",
			NotFoundError: "microphone_missing",
			NotReadableError: "microphone_busy"
		}[t] ?? "microphone_failed", `${t}: ${n}`);
	}
}
function tr(e, t) {
	let n = null, r = 0, i = () => {}, a = () => {};
	return {
		name: e,
		start(e, t, n) {
			i = t, a = n;
		},
		tick(e, o) {
			n ??= e;
			let s = Math.min(t.length, Math.floor((e - n) * M / o));
			s > r && (i(t.subarray(r, s)), r = s, s === t.length && a(null));
		},
		async stop() {
			i = () => {}, a = () => {};
		}
	};
}
async function nr(e, t) {
	let n = mt(new Uint8Array(e));
	if (n && n.samples.length > 0 && n.sampleRateHz >= Zn && n.sampleRateHz <= Qn) {
		let { samples: e, channels: t, sampleRateHz: r } = n, i = Float32Array.from({ length: e.length / t }, (n, r) => e.subarray(r * t, (r + 1) * t).reduce((e, t) => e + t, 0) / t / 32768), a = new j(r, M);
		return rr(a.push(i), a.flush());
	}
	try {
		let t = await new OfflineAudioContext(1, 1, M).decodeAudioData(e);
		if (t.length === 0) throw Error("it holds no sound");
		let n = new Float32Array(t.length);
		for (let e = 0; e < t.numberOfChannels; e += 1) t.getChannelData(e).forEach((e, r) => n[r] = n[r] + e / t.numberOfChannels);
		return n;
	} catch (e) {
		throw new I("file_unreadable", `${t}: ${e instanceof Error ? e.message : e}`);
	}
}
function rr(e, t) {
	let n = new Float32Array(e.length + t.length);
	return n.set(e), n.set(t, e.length), n;
}
async function ir(e) {
	if (e.size > Yn) throw new I("file_too_big", `${e.name} has ${Math.round(e.size / 2 ** 20)} MiB.`);
	try {
		return await e.arrayBuffer();
	} catch (t) {
		throw new I("file_unreadable", `${e.name}: ${t instanceof Error ? t.message : t}`);
	}
}
// studio/src/take-player.ts
var ar = .02, or = .05, sr = class {
	#e = null;
	#t = null;
	#n = null;
	#r = "codec";
	#i = 0;
	#a = 0;
	#o;
	constructor(e) {
		this.#o = e;
	}
	get isPlaying() {
		return this.#e !== null;
	}
	get atS() {
		let e = (this.#e?.currentTime ?? 0) - this.#a;
		return Math.max(0, Math.min(this.#i, e));
	}
	async play(e, t, n, r) {
		this.stop();
		let i = await z();
		this.#e = i, this.#r = r, this.#i = Math.max(e?.length ?? 0, t?.length ?? 0) / M;
		let a = i.currentTime + or;
		this.#a = a - n, this.#t = this.#s(e, a), this.#n = this.#s(t, a), this.listen(r);
	}
	listen(e) {
		this.#r = e, this.#l(this.#t, +(e === "input")), this.#l(this.#n, +(e === "codec"));
	}
	replace(e) {
		let t = this.#e;
		if (!t) return;
		let n = this.#n;
		this.#l(n, 0), setTimeout(() => n?.node.stop(), 70), this.#n = this.#s(e, t.currentTime + ar), this.listen(this.#r);
	}
	stop() {
		for (let e of [this.#t, this.#n]) e && (e.node.onended = null, this.#l(e, 0), e.node.stop((this.#e?.currentTime ?? 0) + ar));
		this.#e = this.#t = this.#n = null;
	}
	#s(e, t) {
		let n = this.#e;
		if (!n || !e || e.length === 0) return null;
		let r = n.createBuffer(1, e.length, M);
		r.copyToChannel(Float32Array.from(e.view(), (e) => e / 32768), 0);
		let [i, a] = [n.createBufferSource(), n.createGain()];
		return i.buffer = r, a.gain.value = 0, i.connect(a).connect(n.destination), i.start(t, Math.max(0, t - this.#a)), i.onended = () => this.#c(i), {
			node: i,
			gain: a
		};
	}
	#c(e) {
		this.#e && (e === this.#n?.node || e === this.#t?.node && !this.#n) && this.atS >= this.#i - .1 && (this.stop(), this.#o());
	}
	#l(e, t) {
		e?.gain.gain.setTargetAtTime(t, this.#e?.currentTime ?? 0, ar / 4);
	}
}, cr = {
	least: 7,
	most: 16
}, lr = 232, ur = 4, dr = 5, fr = 20, Q = 25, pr = .22, mr = /* @__PURE__ */ new Map([
	["ArrowLeft", [-1, 0]],
	["ArrowRight", [1, 0]],
	["ArrowUp", [0, -1]],
	["ArrowDown", [0, 1]],
	["PageUp", [-25, 0]],
	["PageDown", [Q, 0]],
	["Home", [-Infinity, 0]],
	["End", [Infinity, 0]]
]), hr = class {
	#e;
	#t;
	#n;
	#r;
	#i = null;
	#a = 1;
	#o = 1;
	#s = 1;
	#c = cr.least;
	#l = null;
	#u = null;
	constructor(e, t, n, r) {
		this.#e = e, this.#t = t, this.#n = n, this.#r = r, e.addEventListener("pointermove", (e) => this.#g(this.#m(e))), e.addEventListener("pointerleave", () => this.#g(null)), e.addEventListener("pointerdown", (e) => this.#_(this.#m(e))), e.addEventListener("keydown", (e) => this.#v(e));
	}
	use(e, t) {
		this.#i = e, this.#a = t, this.#l = this.#u = null, this.#o = e.levels, this.#c = Math.max(cr.least, Math.min(cr.most, Math.floor(lr / e.levels))), this.#e.style.height = `${this.#p(e.levels) + fr}px`, this.#n("");
	}
	set heard(e) {
		this.#s = e, this.refresh();
	}
	refresh() {
		let e = this.#u ?? this.#l;
		this.#n(e ? this.#y(e) : "");
	}
	draw(e) {
		let { context: t, widthPx: n } = G(this.#e), r = Math.min(this.#t.x(this.#t.shownEnd), n);
		t.fillStyle = e.lane, t.fillRect(40, dr, r - 40, this.#c), t.fillRect(40, this.#p(1), r - 40, this.#p(this.#o) - this.#p(1)), this.#d(t), this.#s < this.#o && (t.fillStyle = e.ink, t.fillRect(40, this.#p(this.#s) - 1, r - 40, 1)), this.#f(t, e, r);
		for (let n of [this.#l, this.#u]) n && this.#h(n) && (t.strokeStyle = e.mark, t.lineWidth = 2, t.strokeRect(this.#t.x(n.frame) - 1, this.#p(n.level) - 1, this.#t.framePx + 1, this.#c + 1));
	}
	#d(e) {
		let { framePx: t, shownFirst: n, shownEnd: r } = this.#t, i = this.#i;
		for (let a = Math.max(0, n); i && a < Math.min(i.frames, r); a += 1) {
			let n = i.frame(a), r = this.#t.x(a);
			n.forEach((n, i) => {
				e.globalAlpha = i < this.#s ? 1 : pr, e.fillStyle = Nt(n, this.#a), e.fillRect(r, this.#p(i), t - 1, this.#c - 1);
			});
		}
		e.globalAlpha = 1;
	}
	#f(e, t, n) {
		e.fillStyle = t.faint, e.textAlign = "right";
		let r = this.#c >= 11 ? 1 : 4;
		for (let t = 0; t < this.#o; t += 1) (t % r === 0 || t === this.#o - 1) && e.fillText(String(t), 32, this.#p(t) + this.#c / 2);
		e.textAlign = "center";
		let i = this.#p(this.#o), a = Math.max(0, Math.ceil(this.#t.shownFirst / Q) * Q);
		for (let t = a; t < this.#t.shownEnd; t += Q) {
			let r = this.#t.x(t);
			e.fillRect(r, i, 1, 4), r + 16 < n && e.fillText(Y(t, 0), Math.max(r, 48), i + 12);
		}
	}
	#p(e) {
		return dr + e * this.#c + (e > 0 ? ur : 0);
	}
	#m(e) {
		let t = this.#e.getBoundingClientRect(), n = e.clientY - t.top - dr, r = n < this.#c ? 0 : Math.floor((n - ur) / this.#c), i = {
			frame: this.#t.frameAt(e.clientX - t.left),
			level: r
		};
		return this.#h(i) ? i : null;
	}
	#h({ frame: e, level: t }) {
		let n = this.#i;
		return n !== null && e >= 0 && e < n.frames && t >= 0 && t < n.levels;
	}
	#g(e) {
		this.#u = e, this.refresh(), this.#r();
	}
	#_(e) {
		this.#l = e, e ? this.#t.show(e.frame) : this.#t.follow(), this.refresh(), this.#r();
	}
	#v(e) {
		let t = this.#i;
		if (e.key === "Escape") this.#_(null);
		else if (t && t.frames > 0 && mr.has(e.key) && !e.ctrlKey && !e.metaKey && !e.altKey) {
			e.preventDefault();
			let [n, r] = this.#l ? mr.get(e.key) : [0, 0], { frame: i, level: a } = this.#l ?? {
				frame: t.frames - 1,
				level: 0
			};
			this.#_({
				frame: Math.max(0, Math.min(t.frames - 1, i + n)),
				level: Math.max(0, Math.min(t.levels - 1, a + r))
			});
		}
	}
	#y({ frame: e, level: t }) {
		let n = this.#h({
			frame: e,
			level: t
		}) ? this.#i?.frame(e)[t] : void 0;
		if (n === void 0) return "";
		let r = t === 0 ? "semantic" : "acoustic", i = t < this.#s ? "" : ", not heard";
		return `code ${n} of 0 .. ${this.#a - 1} · level ${t}, ${r}${i} · frame ${e}, at ${Y(e)}`;
	}
}, gr = 66, _r = 1e3, vr = 16, yr = class {
	map;
	#e = new bn();
	#t = null;
	#n = ["input", "output"].map((e) => ({
		canvas: B(e, HTMLCanvasElement),
		painter: new wn()
	}));
	#r = B("latency", HTMLCanvasElement);
	#i = B("scale", HTMLCanvasElement);
	#a = /* @__PURE__ */ new Map();
	#o = null;
	#s = At();
	#c = !1;
	#l = 0;
	#u = matchMedia("(prefers-reduced-motion: reduce)");
	#d;
	constructor(e) {
		this.#d = e, this.map = new hr(B("map", HTMLCanvasElement), this.#e, (e) => V("cell", e), () => this.draw()), matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
			this.#s = At(), this.draw();
		}), new ResizeObserver(() => this.draw()).observe(B("map", HTMLCanvasElement));
	}
	use(e, t) {
		this.#t = e, this.#a.clear(), this.#o = null, this.#e.follow(), this.map.use(e, t), this.draw();
	}
	set isDone(e) {
		this.#e.isFitted = e, this.#e.follow();
	}
	set playhead(e) {
		this.#o = e, e !== null && this.#e.show(e), this.refresh();
	}
	refresh() {
		if (this.#c) return;
		let e = performance.now() - this.#l, t = (this.#u.matches ? _r : gr) - e;
		this.#c = !0, setTimeout(() => requestAnimationFrame(() => this.draw()), Math.max(0, t));
	}
	draw() {
		this.#c = !1;
		let e = this.#t;
		if (!e) return;
		this.#l = performance.now(), this.#e.resize(B("map", HTMLCanvasElement).clientWidth), this.#e.end = Math.max(e.frames, e.input?.frames ?? 0);
		let t = [this.#s.input, this.#s.output];
		[e.input, e.output].forEach((e, n) => {
			let { canvas: r, painter: i } = this.#n[n];
			U("lanes") === "spectrogram" ? i.draw(r, this.#s, this.#e, e && this.#f(e)) : Cn(r, this.#s, this.#e, e, t[n]), this.#p(r);
		}), this.map.draw(this.#s), this.#p(B("map", HTMLCanvasElement)), Tn(this.#r, this.#s, this.#e, e.latenciesMs);
		let n = Math.min(e.frames, this.#e.shownFrames) * this.#e.framePx;
		B("seek", HTMLInputElement).style.width = `${n + vr}px`, this.#m(), this.map.refresh(), this.#d();
	}
	#f(e) {
		let t = this.#a.get(e) ?? new pn(e);
		return this.#a.set(e, t), t;
	}
	#p(e) {
		let t = e.getContext("2d");
		t && this.#o !== null && (t.fillStyle = this.#s.mark, t.fillRect(this.#e.x(this.#o) - 1, 0, 2, e.clientHeight));
	}
	#m() {
		let { context: e, widthPx: t, heightPx: n } = G(this.#i);
		for (let r = 0; r < t; r += 1) e.fillStyle = Nt(r, t), e.fillRect(r, 0, 1, n);
	}
}, br = 250, xr = /\.(npy|mimi|json)$/i, Sr = class {
	askAgain = () => {};
	#e;
	#t = null;
	#n = "loading";
	#r = 1;
	#i = null;
	#a = null;
	#o = null;
	#s = !1;
	#c = !1;
	#l = 0;
	#u = new Wn((e) => this.askAgain(e));
	#d = new zn(B("meter", HTMLElement), B("meter-words", HTMLElement));
	#f = new yr(() => this.#O());
	#p = new sr(() => this.#T());
	constructor(e) {
		this.#e = e;
	}
	use(e) {
		let t = this.#t === null;
		this.#t = e, t && (B("levels", HTMLInputElement).max = String(e.levels), V("scale-most", String(e.codebook_entries - 1)), this.setLevels(e.default_levels), this.#D("empty", ""));
	}
	refuse(e) {
		this.#u.show(e === null ? null : L(e));
	}
	speak() {
		this.#h("off", "Waiting for the microphone …", () => $n());
	}
	playExample() {
		this.#h("codec", "Fetching the example …", async () => tr("example", await nr(await this.#e.example(), "example")));
	}
	open(e) {
		let t = e.name.replace(/\.[^.]*$/, "");
		xr.test(e.name) ? this.#y(e, t) : this.#h("codec", "Reading the file …", async () => tr(t, await nr(await ir(e), e.name)));
	}
	stop() {
		this.#s = !0, this.#a && (this.#D("finishing", "Stopping; waiting for the last answers …"), this.#a.stop());
	}
	playOrPause() {
		this.#p.isPlaying ? (this.#p.stop(), this.#T()) : this.#C(sn());
	}
	async hear(e) {
		this.#n === "take" && (W("listen", e === "input" ? "input" : "codec"), e !== "input" && e !== this.#r && (this.setLevels(e), await this.#S(), e !== this.#r) || (this.#m(), await this.#C(0)));
	}
	seek(e) {
		this.#p.isPlaying ? this.#C(e) : (this.#f.playhead = e / P, q(e));
	}
	listen(e) {
		this.#a?.listen(e), this.#p.listen(e), this.#m();
	}
	#m() {
		Vt(U("listen") === "input" ? "input" : this.#r);
	}
	setLevels(e) {
		this.#r = e, this.#t && (rn(e, this.#t), this.#m(), this.#f.map.heard = e, this.#f.refresh(), this.#a?.monitor.change(e), this.#n === "take" && this.#S());
	}
	changeLanes() {
		let e = U("lanes") === "spectrogram";
		B("stage", HTMLElement).classList.toggle("spectrograms", e), this.#f.draw();
	}
	save(e) {
		this.#i && qn(this.#i, e, this.#r);
	}
	get inside() {
		let e = this;
		return Object.freeze({
			get state() {
				return e.#n;
			},
			get refusal() {
				return e.#u.code;
			},
			get codes() {
				let t = e.#i;
				return Array.from({ length: t?.frames ?? 0 }, (e, n) => [...t?.frame(n) ?? []]);
			},
			get input() {
				return [...e.#i?.input?.view() ?? []];
			},
			get output() {
				return [...e.#i?.output.view() ?? []];
			},
			get playerReport() {
				return e.#a?.player?.report ?? null;
			},
			get resumes() {
				return e.#a?.stream?.stats.resumes ?? 0;
			},
			get isPlaying() {
				return e.#p.isPlaying;
			}
		});
	}
	async #h(e, t, n) {
		let r = this.#t;
		if (!r || this.#n !== "empty" && this.#n !== "take") return;
		this.#g(e, t);
		let i = null, a = null;
		try {
			await z(), i = await n(), this.#s || (this.#b(new _t(i.name, r.levels), r), this.#a = this.#_(i, e), await this.#a.run());
		} catch (e) {
			a = L(e);
		}
		i?.stop(), this.#v(a);
	}
	#g(e, t) {
		this.#p.stop(), this.#s = this.#c = !1, this.#a = null, this.refuse(null), W("listen", e), this.#D("starting", t);
	}
	#_(e, t) {
		let n = this.#i;
		return new Fn(this.#e, e, n, this.#r, t, {
			changed: () => this.#f.refresh(),
			input: (e) => {
				this.#n === "starting" && this.#D("live", t === "off" ? "Listening to you. With headphones on, choose Codec to hear it live." : "Playing."), this.#d.push(e, performance.now()), q((n.input?.length ?? 0) / M), this.#f.refresh();
			},
			notice: (e) => this.#E(e),
			finishing: () => this.#D("finishing", "The sound has ended; waiting for the last answers …"),
			unheard: (e) => {
				this.#c = !0, this.#u.show(e);
			}
		});
	}
	#v(e) {
		let t = this.#i;
		this.#d.clear(), e && this.#u.show(e), !t || t.frames === 0 && (t.input?.length ?? 0) === 0 ? (this.#i = null, this.#D(this.#t ? "empty" : "loading", "")) : (U("listen") === "off" && W("listen", "codec"), this.#D("take", `${e ? "Stopped after" : "Done:"} ${t.frames} frames, ${Y(t.frames)}.`), t.frames > 0 && this.#a && !this.#a.monitor.isMixed && t.output.frames >= t.frames && this.#o?.keep(this.#a.monitor.levels, t.output), this.#S(), this.#x(t));
	}
	async #y(e, t) {
		let n = this.#t;
		if (!(!n || this.#n !== "empty" && this.#n !== "take")) {
			this.#g("codec", "Reading the codes …");
			try {
				let r = et(new Uint8Array(await ir(e)), e.name);
				if (r.frames > 7500) throw new I("file_too_big", `${e.name} has ${r.frames} frames.`);
				let i = _t.ofCodes(t, r);
				i.output = F.of(await this.#e.decode(i.codes(i.levels), new AbortController().signal)), this.#b(i, n), this.#o?.keep(i.levels, i.output), this.setLevels(i.levels), this.#D("take", `${e.name}: ${i.frames} frames, ${Y(i.frames)}.`), this.#x(i);
			} catch (e) {
				this.#u.show(L(e)), this.#D(this.#i ? "take" : "empty", "");
			}
		}
	}
	#b(e, t) {
		this.#i = e, this.#o = new Qt(this.#e, e), this.#l = 0, an(e), this.setLevels(Math.min(this.#r, e.levels)), en(this.#n, B("status", HTMLElement).textContent ?? "", e), this.#f.use(e, t.codebook_entries);
	}
	#x(e) {
		on(e), this.#l = 0, this.#f.draw();
	}
	async #S() {
		let [e, t] = [this.#i, this.#o];
		if (e && t && e.frames !== 0) try {
			let n = await t.at(this.#r);
			n && e === this.#i && e.output !== n && (e.output = n, this.#p.replace(n), this.#c && (this.#c = !1, this.refuse(null)), this.#f.draw());
		} catch (e) {
			this.refuse(e);
		}
	}
	async #C(e) {
		let t = this.#i;
		if (t && this.#n === "take") try {
			let n = U("listen") === "input" && t.input ? "input" : "codec";
			W("listen", n), await this.#p.play(t.input, t.output, e, n), nn(!0), this.#w();
		} catch (e) {
			this.refuse(e);
		}
	}
	#w() {
		this.#p.isPlaying && (B("seek", HTMLInputElement).value = String(this.#p.atS), this.#f.playhead = this.#p.atS / P, q(this.#p.atS), requestAnimationFrame(() => this.#w()));
	}
	#T() {
		nn(!1), this.#f.draw();
	}
	#E({ kind: e, text: t }) {
		tn({
			lost: "The connection is lost. Your sound is kept; trying again …",
			resumed: "Connected again; nothing is lost.",
			goaway: `Note: ${t}.`,
			warning: `Note: ${t}.`
		}[e], e === "lost");
	}
	#D(e, t) {
		this.#n = e, this.#f.isDone = e === "take", en(e, t, this.#i), Bt(e === "take" ? this.#i : null), (e === "take" || e === "empty") && Tt();
	}
	#O() {
		let e = performance.now();
		this.#i && this.#t && e - this.#l >= br && (this.#l = e, Dn(this.#i, this.#a, this.#t, this.#r, this.#n === "live"));
	}
}, Cr = new qt(document.baseURI), $ = new Sr(Cr);
Object.defineProperty(globalThis, "mimi", { value: $.inside });
var wr = B("hero", HTMLCanvasElement);
new ResizeObserver(() => Ft(wr)).observe(wr);
async function Tr() {
	try {
		let e = await Cr.facts();
		V("model", `${e.name} · ${e.weight_class}, ${e.numerics} numerics · up to ${e.levels} levels`), $.use(e), wt(), $.refuse(null);
	} catch (e) {
		$.refuse(e);
	}
}
Ut($), $.askAgain = (e) => {
	Cr.use(e), Tr();
}, Tr();
