# `make run` and `make test` are all that a fresh machine needs; see README.md.

CARGO ?= cargo
SNAFFLE = target/release/snaffle
DEMO = .snaffle/demo

.DEFAULT_GOAL := help
.PHONY: help run test lint bench setup build models fmt

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

run: build ## Build, fetch the default model, and have it turn on a light
	@$(SNAFFLE) model pull smollm2-135m
	@mkdir -p $(DEMO)
	@cp examples/houses/maple.toml $(DEMO)/maple.toml
	@echo
	@$(SNAFFLE) run --house $(DEMO)/maple.toml --state-dir .snaffle "turn on the kitchen light"

test: models ## Everything that tests it
	$(CARGO) test --release --locked

models: build ## Fetch both tiny models (98 MB and 253 MB)
	@$(SNAFFLE) model pull smollm2-135m
	@$(SNAFFLE) model pull gemma3-270m

build: setup ## Build the program
	$(CARGO) build --release --locked

setup: ## Install what the build needs
	@scripts/setup

lint: ## Format, clippy, dependencies
	$(CARGO) fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings
	@scripts/deny

bench: models ## The home benchmark, beside random logits
	$(SNAFFLE) bench home --model smollm2-135m
	$(SNAFFLE) bench home --model gemma3-270m
