"""The FOCUS cost and usage columns of versions 1.0 to 1.4 as a table: what the export writes and the checker asks for.

Source: FinOps Open Cost and Usage Specification, cost and usage dataset, versions 1.0 (June 2024) to 1.4 (June 2026):
column definitions, the attributes NumericFormat, DateTimeFormat, KeyValueFormat and NullHandling.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Version: TypeAlias = Literal["1.0", "1.1", "1.2", "1.3", "1.4"]
VERSIONS: tuple[Version, ...] = ("1.0", "1.1", "1.2", "1.3", "1.4")
Kind: TypeAlias = Literal["text", "decimal", "time", "object", "currency"]
# Whether a column must be there: always; where any column of its group is; or as its data asks.
Presence: TypeAlias = Literal["must", "priced", "metered", "may"]
# Where a value must be, and where it must not: never null; for usage and purchases (and not for tax); for what was
# consumed; exactly where the column named by `beside` has one; only there; anywhere.
Nullable: TypeAlias = Literal["never", "charged", "consumed", "beside", "only_beside", "may"]

SERVICE_CATEGORIES = (
    *("AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases", "Developer Tools"),
    *("Multicloud", "Identity", "Integration", "Internet of Things", "Management and Governance", "Media"),
    *("Migration", "Mobile", "Networking", "Security", "Storage", "Web", "Other"),
)
# Of the category "AI and Machine Learning", the only one whose subcategories are checked.
AI_SUBCATEGORIES = (
    *("AI Platforms", "Bots", "Generative AI", "Machine Learning", "Natural Language Processing"),
    "Other (AI and Machine Learning)",
)
# SKU price properties that FOCUS defines; any other key begins with x_.
SKU_PROPERTIES = (
    *("CoreCount", "DiskMaxIops", "DiskSpace", "DiskType", "GpuCount", "InstanceSeries", "InstanceType"),
    *("MemorySize", "NetworkMaxIops", "NetworkMaxThroughput", "OperatingSystem", "Redundancy", "StorageClass"),
)


class Column(NamedTuple):
    """One column.

    Args:
        name: Its id.
        kind: What its values are.
        presence: Whether it must be there.
        nullable: Where it may have no value.
        since: First version that has it.
        until: Last one.
        values: The values it may have; empty for any.
        beside: Column that decides whether it has a value.
    """

    name: str
    kind: Kind = "text"
    presence: Presence = "may"
    nullable: Nullable = "may"
    since: Version = "1.0"
    until: Version = "1.4"
    values: tuple[str, ...] = ()
    beside: str = ""

    def is_in(self, version: Version) -> bool:
        """Tell whether a version has the column.

        Args:
            version: The version.

        Returns:
            Whether it does.
        """
        return VERSIONS.index(self.since) <= VERSIONS.index(version) <= VERSIONS.index(self.until)


def _must(name: str, kind: Kind = "text", **more: str | tuple[str, ...]) -> Column:
    return Column(name, kind, "must", "never", **more)  # pyright: ignore[reportArgumentType] -- fields of the table below


def _beside(name: str, other: str, kind: Kind = "text", since: Version = "1.0") -> Column:
    return Column(name, kind, nullable="beside", since=since, beside=other)


COLUMNS: tuple[Column, ...] = (
    Column("AllocatedMethodDetails", "object", since="1.3"),
    Column("AllocatedMethodId", since="1.3"),
    Column("AllocatedResourceId", since="1.3"),
    Column("AllocatedResourceName", since="1.3"),
    Column("AllocatedTags", "object", since="1.3"),
    Column("AvailabilityZone"),
    _must("BilledCost", "decimal"),
    _must("BillingAccountId"),
    Column("BillingAccountName", presence="must"),
    Column("BillingAccountType", nullable="beside", since="1.2", beside="BillingAccountId"),
    _must("BillingCurrency", "currency"),
    _must("BillingPeriodEnd", "time"),
    _must("BillingPeriodStart", "time"),
    Column("CapacityReservationId", since="1.1"),
    Column(
        "CapacityReservationStatus",
        nullable="only_beside",
        since="1.1",
        beside="CapacityReservationId",
        values=("Used", "Unused"),
    ),
    _must("ChargeCategory", values=("Usage", "Purchase", "Tax", "Credit", "Adjustment")),
    Column("ChargeClass", presence="must", values=("Correction",)),
    Column("ChargeDescription", presence="must"),
    Column("ChargeFrequency", nullable="never", values=("One-Time", "Recurring", "Usage-Based")),
    _must("ChargePeriodEnd", "time"),
    _must("ChargePeriodStart", "time"),
    Column("CommitmentDiscountCategory", nullable="beside", beside="CommitmentDiscountId", values=("Spend", "Usage")),
    Column("CommitmentDiscountId"),
    Column("CommitmentDiscountName", nullable="only_beside", beside="CommitmentDiscountId"),
    _beside("CommitmentDiscountQuantity", "CommitmentDiscountId", "decimal", "1.1"),
    Column(
        "CommitmentDiscountStatus", nullable="only_beside", beside="CommitmentDiscountId", values=("Used", "Unused")
    ),
    _beside("CommitmentDiscountType", "CommitmentDiscountId"),
    _beside("CommitmentDiscountUnit", "CommitmentDiscountQuantity", since="1.1"),
    Column("CommitmentProgramEligibilityDetails", "object", since="1.4"),
    Column("ConsumedQuantity", "decimal", "metered", "consumed"),
    Column("ConsumedUnit", "text", "metered", "beside", beside="ConsumedQuantity"),
    _must("ContractedCost", "decimal"),
    Column("ContractedUnitPrice", "decimal", "priced", "charged"),
    Column("ContractApplied", "object", since="1.3"),
    _must("EffectiveCost", "decimal"),
    _must("HostProviderName", since="1.3"),
    Column("InvoiceDetailId", since="1.4"),
    Column("InvoiceId", since="1.2"),
    _must("InvoiceIssuerName"),
    _must("ListCost", "decimal"),
    Column("ListUnitPrice", "decimal", "priced", "charged"),
    Column("PricingCategory", nullable="charged", values=("Standard", "Committed", "Dynamic", "Other")),
    Column("PricingCurrency", "text", nullable="never", since="1.2"),
    Column("PricingCurrencyContractedUnitPrice", "decimal", nullable="charged", since="1.2"),
    Column("PricingCurrencyEffectiveCost", "decimal", nullable="never", since="1.2"),
    Column("PricingCurrencyListUnitPrice", "decimal", nullable="charged", since="1.2"),
    Column("PricingQuantity", "decimal", "must", "charged"),
    Column("PricingUnit", "text", "must", "beside", beside="PricingQuantity"),
    _must("ProviderName", until="1.3"),
    _must("PublisherName", until="1.3"),
    Column("RegionId"),
    _beside("RegionName", "RegionId"),
    Column("ResourceId"),
    Column("ResourceName", nullable="only_beside", beside="ResourceId"),
    _beside("ResourceType", "ResourceId"),
    _must("ServiceCategory", values=SERVICE_CATEGORIES),
    _must("ServiceName"),
    _must("ServiceProviderName", since="1.3"),
    Column("ServiceSubcategory", nullable="never", since="1.1"),
    Column("SkuId", presence="priced", nullable="charged"),
    Column("SkuMeter", presence="priced", nullable="only_beside", since="1.1", beside="SkuId"),
    Column("SkuPriceDetails", "object", "priced", "only_beside", since="1.1", beside="SkuPriceId"),
    Column("SkuPriceId", presence="priced", nullable="charged"),
    Column("SubAccountId"),
    _beside("SubAccountName", "SubAccountId"),
    Column("SubAccountType", nullable="beside", since="1.2", beside="SubAccountId"),
    Column("Tags", "object"),
)
BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}

# The two identities: unit price times PricingQuantity is the cost.
PRODUCTS = (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost"))


def columns_of(version: Version) -> tuple[Column, ...]:
    """List the columns of a version.

    Args:
        version: The version.

    Returns:
        Its columns, by name.
    """
    return tuple(column for column in COLUMNS if column.is_in(version))
